"""Right answers to the exercises of ``encoder``, and what becomes of their mutants."""
