"""Right answers to the exercises of ``patches``, and what becomes of their mutants."""
