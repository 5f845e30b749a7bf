"""What proves the checkers: banks, right answers and mutants, for ``make proof``."""
