"""Checkers of notebook 01: patches, class token, positions."""
