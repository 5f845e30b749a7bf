"""Checkers of notebook 02: softmax, attention, heads, cost."""
