"""The line between the grader and a process that nobody trusts: frames, messages, answers asked from afar."""
