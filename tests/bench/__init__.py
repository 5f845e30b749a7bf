"""Measurements of the checkers and the grader, with right and wrong answers to all exercises."""
