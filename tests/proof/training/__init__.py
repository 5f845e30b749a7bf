"""Right answers to the exercises of ``training``, and what becomes of their mutants."""
