"""Where notebooks of 0.2 look for ``vitedu.ground.hardware``."""

from vitedu.ground.hardware import *  # noqa: F403
