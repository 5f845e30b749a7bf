"""Right answers to the exercises of ``less_data``, and what becomes of their mutants."""
