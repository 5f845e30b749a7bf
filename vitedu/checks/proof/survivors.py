"""The mutants that pass, and why: what ``vitedu.checks.proof.mutation`` holds its run against.

Both tables go from an exercise and a reason to the lines as ``vitedu bank --mutate`` prints them. A line whose mutant
is rejected, or no longer made, is an error: the tables stay exact.
"""

# methods that the notebook gives to the student
GIVEN = {"VisionTransformer": ("__init__",)}

_AXIS = "the same axis, counted from the other end or named in the other order"
_SIZES = "sizes that are bound and not used"
_DEFAULT = "what is left out is the default"
_BOUNDARY = "a remainder by -n is 0 where one by n is"
_ZEROS = "0 and 0.0 are added to alike"
_AS_MANY = "a batch has as many labels as images"
_NUMBER = "exercises.md takes 0-d tensors as numbers"
_SUMS = (  # both loops over batches begin with them
    "correct, total_loss, seen = (0.0, 0, 0)",
    "seen, correct, total_loss = (0.0, 0, 0)",
    "total_loss, seen, correct = (0.0, 0, 0)",
    "total_loss, correct, seen = (0, 0.0, 0)",
    "total_loss, correct, seen = (0, 0, 0.0)",
)

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
    "layer_norm": {
        "a square has no sign": ("variance = ((mean - x) ** 2).mean(dim=-1, keepdim=True)",),
    },
    "count_parameters": {
        "image_size is a multiple of patch_size, and a float is a number": (
            "num_patches = (config.image_size / config.patch_size) ** 2",
        ),
        "a ViTConfig has the attribute": (
            "num_prefix_tokens = getattr(config, 'num_prefix_tokens')",
            "num_prefix_tokens = getattr(config, 'num_prefix_tokens', -2)",
            "num_prefix_tokens = getattr(config, 'num_prefix_tokens', -1)",
            "num_prefix_tokens = getattr(config, 'num_prefix_tokens', 0)",
            "num_prefix_tokens = getattr(config, 'num_prefix_tokens', 2)",
        ),
    },
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
    "weight_decay_groups": {
        "two empty lists": ("no_decay, decay = ([], [])",),
        "the order of a look-up": ("is_token = name.split('.')[-1] in ('pos_embed', 'cls_token')",),
    },
    "random_crop_flip": {
        _DEFAULT: (
            "top = torch.randint(2 * padding + 1, (B, 1), **draw).to(images.device)",
            "left = torch.randint(2 * padding + 1, (B, 1), **draw).to(images.device)",
            "picked = images[batch[:, None, None], :, rows[:, :, None], columns[:, None]]",
        ),
        "reflect begins with the absolute value": (
            "rows = padding - (top + torch.arange(H, device=images.device))",
            "columns = padding - (left + torch.arange(W, device=images.device))",
        ),
        "the offset drawn is 2*padding minus the other, and both are as likely": (
            "rows = top - torch.arange(H, device=images.device) - padding",
            "columns = left - torch.arange(W, device=images.device) - padding",
        ),
        "the other side of a fair coin": (
            "flip = (torch.rand(B, 1, **draw) <= 0.5).to(images.device)",
            "flip = (torch.rand(B, 1, **draw) > 0.5).to(images.device)",
            "flip = (torch.rand(B, 1, **draw) >= 0.5).to(images.device)",
            "columns = torch.where(flip, columns, columns.flip(1))",
        ),
        "an index may live on the CPU": (
            "batch = torch.arange(B)",
            "batch = torch.arange(B, device=generator.device)",
        ),
        _AXIS: (
            "columns = torch.where(flip, columns.flip(-1), columns)",
            "return picked.permute(0, 3, 1, -2).contiguous()",
        ),
    },
    "evaluate": {
        _ZEROS: _SUMS,
        _AS_MANY: (
            "total_loss += cross_entropy(logits, labels).item() * len(images)",
            "seen += len(images)",
        ),
        _AXIS: ("correct += (logits.argmax(dim=1) == labels).sum().item()",),
    },
}

_POOL = "pool is a field of this package; the contract's model reads its class token"

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
    "VisionTransformer": {
        _POOL: (
            "x = x[:, 0]",
            "x = x[:, 0] if self.config.pool <= 'cls' else x.mean(dim=1)",
            "x = x[:, 0] if self.config.pool >= 'cls' else x.mean(dim=1)",
            "x = x[:, 0] if self.config.pool == 'cls' else x",
            "x = x[:, 0] if self.config.pool == 'cls' else x.mean()",
            "x = x[:, 0] if self.config.pool == 'cls' else x.sum(dim=1)",
            "x = x[:, 0] if self.config.pool == 'cls' else x.mean(dim=-2)",
            "x = x[:, 0] if self.config.pool == 'cls' else x.mean(dim=-1)",
            "x = x[:, 0] if self.config.pool == 'cls' else x.mean(dim=0)",
            "x = x[:, 0] if self.config.pool == 'cls' else x.mean(dim=2)",
        ),
    },
    "count_parameters": {
        _POOL: (
            "num_prefix_tokens = getattr(config, 'num_prefix_tokens_', 1)",
            "prefix_and_positions = D + (num_patches + num_prefix_tokens) * D",
        ),
    },
    "cross_entropy": {
        "labels of a smaller integer type than int64 are not asked for": (
            "on_label = -log_probs.gather(1, labels.unsqueeze(1)).squeeze(1)",
        ),
    },
    "weight_decay_groups": {
        "the order of the groups is free": (
            "return [{'params': no_decay, 'weight_decay': 0.0}, {'params': decay, 'weight_decay': weight_decay}]",
        ),
    },
    "random_crop_flip": {
        "nothing is said about the layout in memory": ("return picked.permute(0, 3, 1, 2)",),
    },
    "evaluate": {
        _NUMBER: (
            "total_loss += cross_entropy(logits, labels) * len(labels)",
            "correct += (logits.argmax(dim=-1) == labels).sum()",
        ),
    },
}


def lines(table: dict[str, dict[str, tuple[str, ...]]], exercise_id: str) -> set[str]:
    """Collect the lines that a table explains for an exercise."""
    return {line for group in table.get(exercise_id, {}).values() for line in group}
