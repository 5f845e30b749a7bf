"""The checkers of notebook 08."""
