"""Checkers of notebook 06."""
