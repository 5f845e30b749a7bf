"""Right answers to the exercises of ``efficient``, and what becomes of their mutants."""
