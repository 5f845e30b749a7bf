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
