"""Checkers of notebook 05: maps, rollout, pointing, the logit lens, positions, confusions."""
