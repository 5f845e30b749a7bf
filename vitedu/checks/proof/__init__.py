"""Tests of the checkers themselves: on their banks, on mutants, on an author's answers."""
