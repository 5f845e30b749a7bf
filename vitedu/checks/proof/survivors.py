"""The mutants that pass, and why: what ``vitedu.checks.proof.mutation`` holds its run against.

Both tables go from an exercise and a reason to the lines as ``vitedu bank --mutate`` prints them. A line whose mutant
is rejected, or no longer made, is an error: the tables stay exact.
"""

# methods that the notebook gives to the student
GIVEN = {"MultiHeadAttention": ("__init__",)}

_AXIS = "the same axis, counted from the other end or named in the other order"
_SIZES = "sizes that are bound and not used"
_BOUNDARY = "a remainder by -n is 0 where one by n is"

# can not be told apart by any input that the contract allows
EQUIVALENT: dict[str, dict[str, tuple[str, ...]]] = {
    "unpatchify": {_AXIS: ("x = x.permute(0, -3, 1, 4, 2, 5)",)},
    "linear_from_conv": {
        "it is copied under no_grad": ("weight = conv.weight.flatten(1)",),
    },
    "add_class_token_and_positions": {
        _SIZES: ("B, D, N = patch_tokens.shape",),
        "the class token has one row already": ("cls = cls_token.expand(B, 1, -1)",),
        _AXIS: ("tokens = torch.cat([cls, patch_tokens], dim=-2)",),
    },
    "sincos_positions": {
        _BOUNDARY: ("if embed_dim % -2:",),
        "whole numbers divided by float64 are float64": (
            "position = torch.arange(num_positions).unsqueeze(1)",
        ),
        _AXIS: (
            "position = torch.arange(num_positions, dtype=torch.float64).unsqueeze(-1)",
            "return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).float()",
            "return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2).float()",
        ),
    },
    "sincos_positions_2d": {
        _BOUNDARY: ("if embed_dim % -4:",),
        "an even number halved is whole, as a float too": (
            "rows = sincos_positions(gh, embed_dim / 2)",
            "columns = sincos_positions(gw, embed_dim / 2)",
        ),
        _AXIS: (
            "return torch.cat([rows.repeat_interleave(gw, dim=-2), columns.repeat(gh, 1)], dim=1)",
            "return torch.cat([rows.repeat_interleave(gw, dim=0), columns.repeat(gh, 1)], dim=-1)",
        ),
    },
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
    "unpatchify": {
        "no error is asked for where the patches do not fill the image": (
            "without: if H % P or W % P or gh * gw != N or length % (P * P):; raise ValueError(...)",
            "if H % P and W % P and (gh * gw != N) and length % (P * P):",
            "if W % P or gh * gw != N or length % (P * P):",
            "if H % P or gh * gw != N or length % (P * P):",
            "if H % P or W % P or length % (P * P):",
            "if H % P or W % P or gh * gw != N:",
            "if W % P or W % P or gh * gw != N or length % (P * P):",
            "if H % P or H % P or gh * gw != N or length % (P * P):",
            "if H % P or W % P or gh * gw < N or length % (P * P):",
            "if H % P or W % P or gh * gw > N or length % (P * P):",
            "if H % P or W % P or gh * gw != N or length % (P / P):",
            "if H % P or W % P or gh * gw != N or length % (P // P):",
            "if H % P or W % P or gh * gw != N or length % P:",
            "without: raise ValueError(...)",
            "raise TypeError(...)",
        ),
    },
    "sincos_positions": {
        "exponents rounded to float32 are right to the tolerance of a float32 table": (
            "exponent = torch.arange(0, embed_dim, 2) / embed_dim",
        ),
    },
    "cross_entropy": {
        "labels of a smaller integer type than int64 are not asked for": (
            "on_label = -log_probs.gather(1, labels.unsqueeze(1)).squeeze(1)",
        ),
    },
}


def lines(table: dict[str, dict[str, tuple[str, ...]]], exercise_id: str) -> set[str]:
    """Collect the lines that a table explains for an exercise."""
    return {line for group in table.get(exercise_id, {}).values() for line in group}
