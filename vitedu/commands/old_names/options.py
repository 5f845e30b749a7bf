"""Where notebooks of 0.2 look for ``vitedu.extras.options``."""

from vitedu.extras.options import *  # noqa: F403
