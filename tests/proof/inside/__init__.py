"""Right answers to the exercises of ``inside``, and what becomes of their mutants."""
