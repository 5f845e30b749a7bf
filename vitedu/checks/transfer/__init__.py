"""Checkers of notebook 09: names, positions, learning rates by depth, adapters, losses of pairs."""
