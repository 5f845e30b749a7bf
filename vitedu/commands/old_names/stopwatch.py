"""Where notebooks of 0.2 look for ``vitedu.ground.stopwatch``."""

from vitedu.ground.stopwatch import *  # noqa: F403
