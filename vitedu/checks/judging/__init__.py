"""From two observations of a case to problems, findings and points."""
