"""Connections to other systems: nbgrader, Gradescope, Classroom 50."""
