"""The connection between the grader and untrusted workers: frames, messages."""
