"""The checkers of notebook 07, one file an exercise."""
