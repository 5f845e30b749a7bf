"""Every measurement that the README or a notebook quotes, as a command: ``vitedu bench``."""
