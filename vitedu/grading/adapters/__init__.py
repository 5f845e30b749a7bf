"""Connections to other systems: nbgrader, Gradescope, a dask cluster."""
