"""Where notebooks of 0.2 look for ``vitedu.extras.transplant``."""

from vitedu.extras.transplant import *  # noqa: F403
