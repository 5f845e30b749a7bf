"""Measurements of the checkers and the grader, which need right and wrong answers to all exercises."""
