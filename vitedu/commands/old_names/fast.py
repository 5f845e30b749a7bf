"""Where notebooks of 0.2 look for ``vitedu.extras.fast``."""

from vitedu.extras.fast import *  # noqa: F403
