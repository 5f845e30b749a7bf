"""Other systems: nbgrader, Gradescope, a dask cluster."""
