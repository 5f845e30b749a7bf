"""What proves that the checkers decide rightly: banks, right answers and mutants, for ``make proof``."""
