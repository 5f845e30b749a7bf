"""Checker of VisionTransformer: its cases, its known mistakes, and what is said of them."""

import math

import torch

from vitedu.checks.arguments import Config
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.encoder.states import random_state
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case
from vitedu.vit import VisionTransformer


def vit_cases(g: torch.Generator) -> list[Case]:
    """Draw small models whose sizes all differ."""

    def case(B, dtype=torch.float32, note="", rest=None, **fields):
        rest = rest or {}
        config = Config(**fields)
        with torch.device("meta"):
            shapes = {
                name: tuple(value.shape)
                for name, value in VisionTransformer(config.build()).named_parameters()
            }
        state = random_state(shapes, g, dtype)
        images = normal(
            g, B, fields["in_channels"], fields["image_size"], fields["image_size"], dtype=dtype
        )
        loose = {"rtol": 1e-3, "atol": 2e-4} if dtype == torch.float32 else {}
        return Case(f"{plural(B, 'image')}, {config}{note}", {"images": images}, driver="module",
                    init={"config": config}, state=state, outputs=("logits",), **loose, **rest)  # fmt: skip

    heads = draw(g, 2, 3)
    D = heads * draw(g, 3, 5)
    B, C = distinct(g, 2, 2, 4)
    K, P = draw(g, 5, 9), draw(g, 2, 3)
    side, depth = draw(g, 2, 4), draw(g, 2, 3)
    fields = {"image_size": side * P, "patch_size": P, "in_channels": C, "num_classes": K, "embed_dim": D, "depth": depth,
              "num_heads": heads, "mlp_ratio": 2.0}  # fmt: skip
    square = fields | {"image_size": 3 * P, "embed_dim": 9, "num_heads": 3, "depth": 1}
    return [
        case(B, **fields, rest={"gradients": ("images",)}),
        case(1, **(fields | {"depth": 1, "in_channels": 1}), rest={"part": "other sizes"}),
        case(B, **square, note=", as many patches as columns", rest={"part": "other sizes"}),
        case(B, **(fields | {"depth": 1, "qkv_bias": False}), rest={"part": "other sizes"}),
        case(
            B,
            **(fields | {"depth": 1}),
            dtype=torch.float64,
            note=", float64",
            rest={"part": "other sizes"},
        ),
        case(
            B,
            **(fields | {"depth": 1}),
            note=", on an accelerator",
            rest={"part": "any device", "on_accelerator": True},
        ),
    ]


def faulty_vit(mistakes: frozenset[str]):
    """Run a model with the named mistakes made."""

    class Faulty(VisionTransformer):
        def forward(self, images):
            B = len(images)
            x = self.patch_embed.proj(images).flatten(2)
            N = x.shape[-1]
            if "patches_reshaped" in mistakes:
                x = x.reshape(B, N, -1)
            elif "patches_by_column" in mistakes:
                side = math.isqrt(N)
                x = x.unflatten(2, (side, side)).transpose(2, 3).flatten(2).mT
            else:
                x = x.mT
            cls = self.cls_token.expand(B, -1, -1)
            positions = self.pos_embed
            if "no_positions" in mistakes:
                positions = torch.zeros_like(positions)
            if "positions_on_patches_only" in mistakes:
                positions = torch.cat([torch.zeros_like(positions[:, :1]), positions[:, 1:]], dim=1)
            if "class_token_last" in mistakes:
                x = torch.cat([x, cls], dim=1) + positions
            else:
                x = torch.cat([cls, x], dim=1) + positions
            if "norm_first" in mistakes:
                x = self.norm(x)
            blocks = list(self.blocks)
            if "first_block_only" in mistakes:
                blocks = blocks[:1] * len(blocks)
            if "blocks_reversed" in mistakes:
                blocks = blocks[::-1]
            if "last_block_left_out" in mistakes and len(blocks) > 1:
                blocks = blocks[:-1]
            for block in blocks if "blocks_unused" not in mistakes else ():
                x = x + block(x) if "added_around_blocks" in mistakes else block(x)
            if "no_final_norm" not in mistakes and "norm_first" not in mistakes:
                x = self.norm(x)
            if "head_on_mean" in mistakes:
                pooled = x.mean(dim=1)
            elif "head_on_patch_mean" in mistakes:
                pooled = x[:, 1:].mean(dim=1)
            elif "head_on_last_token" in mistakes:
                pooled = x[:, -1]
            elif "head_on_first_patch" in mistakes:
                pooled = x[:, 1]
            elif "all_tokens" in mistakes:
                pooled = x
            else:
                pooled = x[:, -1] if "class_token_last" in mistakes else x[:, 0]
            logits = pooled if "no_head" in mistakes else self.head(pooled)
            return logits.softmax(dim=-1) if "probabilities" in mistakes else logits

    Faulty.__name__ = "VisionTransformer"
    return Faulty


VIT_BANK = (
    Misconception("no_positions", "no positions are added", "class token and patches plus pos_embed", "The model could not tell a shuffled image from the image.", "Add pos_embed before the first block."),
    Misconception("positions_on_patches_only", "the class token gets no position", "pos_embed has a row for it too", "Its row would never learn.", "Add pos_embed after the class token has joined."),
    Misconception("class_token_last", "the class token stands last", "tokens[:, 0] is the class token", "Its position is row 0 of pos_embed.", "Look at the order in torch.cat."),
    Misconception("no_final_norm", "the final norm is missing", "norm after the last block, before the head", "The tokens of a pre-norm model grow with depth; the head needs them at one scale.", "Use self.norm."),
    Misconception("norm_first", "the norm stands before the blocks", "norm after the last block", "What comes out of the blocks would reach the head at any scale.", "Look at where self.norm is called."),
    Misconception("head_on_mean", "the head reads the mean of all tokens", "the class token", "A good choice, and another one: the mean includes the class token here.", "Take token 0."),
    Misconception("head_on_patch_mean", "the head reads the mean of the patch tokens", "the class token", "Many later ViTs do so; the textbook model has a class token for it.", "Take token 0."),
    Misconception("head_on_last_token", "the head reads the last token", "the class token, token 0", "The last token is a patch, at the bottom right.", "Look at the index."),
    Misconception("head_on_first_patch", "the head reads the first patch", "the class token, token 0", "Token 1 is the patch at the top left.", "Look at the index."),
    Misconception("all_tokens", "the head is applied to every token", "one row of logits for an image", "Only one token speaks for the image.", "Pick the class token first."),
    Misconception("no_head", "the class token is returned, not the logits", "logits, one for each class", "A feature is not yet an answer.", "Use self.head."),
    Misconception("probabilities", "softmax is applied to the logits", "logits, as they come from the head", "cross_entropy applies softmax itself; twice flattens the gradient.", "Return what the head gives."),
    Misconception("first_block_only", "the first block is used again and again", "every block once, in order", "The others would never learn.", "Look at what the loop calls."),
    Misconception("blocks_reversed", "the blocks run in reverse", "blocks 0, 1, 2 ...", "Trained weights belong to their place.", "Look at the loop."),
    Misconception("last_block_left_out", "the last block is left out", "every block once", "Off by one.", "Look at where the loop ends."),
    Misconception("blocks_unused", "what the blocks return is not used", "every block works on what the one before returned", "A block changes nothing in place: it returns new tokens.", "Look at the left side of the line that calls a block."),
    Misconception("added_around_blocks", "a path leads around every block as well", "x = block(x)", "The blocks have their own two paths inside.", "Do not add x again."),
    Misconception(
        "patches_reshaped", "the patch features are reshaped, not transposed", "token i holds all channels of patch i",
        "A reshape would mix channels and patches.", "From (B, D, N) to (B, N, D) it takes a transpose.",
    ),
    Misconception("patches_by_column", "the patches run down the columns", "row by row, as patchify numbers them", "Every patch would get another's position.", "flatten(2) keeps rows together."),
)  # fmt: skip

CHECKER = Checker(
    "VisionTransformer",
    VisionTransformer,
    vit_cases,
    faulty_vit,
    VIT_BANK,
    proves={
        "values": "logits equal to the definition at random weights",
        "other sizes": "also for one image, one channel, no qkv bias and float64",
    },
    given=("__init__",),
)
