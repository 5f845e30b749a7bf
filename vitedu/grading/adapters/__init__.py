"""Connections to other systems: nbgrader, Gradescope."""
