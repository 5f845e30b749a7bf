"""The mutants that pass, and why: what ``vitedu.checks.proof.mutation`` holds its run against.

Both tables go from an exercise and a reason to the lines as ``vitedu bank --mutate`` prints them. A line whose mutant
is rejected, or no longer made, is an error: the tables stay exact.
"""

# methods that the notebook gives to the student
GIVEN = {"MultiHeadAttention": ("__init__",)}

_AXIS = "the same axis, counted from the other end or named in the other order"

# can not be told apart by any input that the contract allows
EQUIVALENT: dict[str, dict[str, tuple[str, ...]]] = {
    "split_heads": {
        _AXIS: (
            "return x.reshape(B, T, num_heads, D // num_heads).transpose(2, 1)",
            "return x.reshape(B, T, num_heads, D // num_heads).transpose(1, -2)",
        ),
    },
    "merge_heads": {
        _AXIS: (
            "return x.transpose(2, 1).flatten(2)",
            "return x.transpose(1, -2).flatten(2)",
            "return x.transpose(1, 2).flatten(-2)",
        ),
    },
    "MultiHeadAttention": {_AXIS: ("q, k, v = self.qkv(x).chunk(3, dim=2)",)},
    "cross_entropy": {
        _AXIS: (
            "log_probs = logits - logits.logsumexp(dim=1, keepdim=True)",
            "on_label = -log_probs.gather(-1, labels.long().unsqueeze(1)).squeeze(1)",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(-1)).squeeze(1)",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1)).squeeze(-1)",
            "on_all = -log_probs.mean(dim=1)",
        ),
        "the mean over all pairs (i, j) of a_i + b_j is the mean of a plus that of b": (
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1))",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1)).squeeze()",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1)).unsqueeze(1)",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1)).squeeze(-2)",
            "on_label = -log_probs.gather(1, labels.long().unsqueeze(1)).squeeze(0)",
            "on_all = -log_probs.mean()",
        ),
    },
    "warmup_cosine": {
        "a cosine has no sign": (
            "progress = (warmup_steps - (step + 1)) / (total_steps - warmup_steps)",
            "progress = (step + 1 - warmup_steps) / (warmup_steps - total_steps)",
        ),
    },
}


# differ, but only where exercises.md asks for nothing
LEFT_OPEN: dict[str, dict[str, tuple[str, ...]]] = {
    "cross_entropy": {
        "labels of a smaller integer type than int64 are not asked for": (
            "on_label = -log_probs.gather(1, labels.unsqueeze(1)).squeeze(1)",
        ),
    },
}


def lines(table: dict[str, dict[str, tuple[str, ...]]], exercise_id: str) -> set[str]:
    """Collect the lines that a table explains for an exercise."""
    return {line for group in table.get(exercise_id, {}).values() for line in group}
