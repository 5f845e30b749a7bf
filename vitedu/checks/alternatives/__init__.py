"""Right answers that share no line with the reference: what every checker must accept."""
