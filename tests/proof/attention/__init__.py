"""Right answers to the exercises of ``attention``, and what becomes of their mutants."""
