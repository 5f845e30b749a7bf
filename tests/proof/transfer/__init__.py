"""Right answers to the exercises of ``transfer``, and what becomes of their mutants."""
