"""Every measurement that ``MEASURED.md`` or a notebook quotes, as a command: ``vitedu bench``."""
