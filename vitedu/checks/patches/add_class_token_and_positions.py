import torch
import torch.nn.functional as F

from vitedu.checks.kit import UNUSED_SIZES, USUAL, Checker, Mistake, also, shaped

MISTAKES = (
    Mistake(
        "class_token_last",
        "the class token stands last",
        "tokens[:, 0] is the class token plus its position",
        "The head, published weights and position 0 expect it first.",
        "Look at the order of the two tensors in torch.cat.",
        {"[cls, patch_tokens]": "[patch_tokens, cls]"},
    ),
    Mistake(
        "positions_on_patches_only",
        "the class token gets no position",
        "pos_embed has N+1 rows, one for the class token",
        "Its own row is learned like the others.",
        "Add pos_embed after the class token has joined, to all tokens.",
        {
            "return tokens + pos_embed": "positions = torch.cat([torch.zeros_like(pos_embed[:, :1]), pos_embed[:, 1:]], dim=1)\nreturn tokens + positions"
        },
    ),
    Mistake(
        "positions_shifted",
        "every token gets the position of its neighbour",
        "row i of pos_embed belongs to token i",
        "Row 0 is the class token's.",
        "Look for a roll, or for positions that are joined in another order than the tokens.",
        {"return tokens + pos_embed": "return tokens + pos_embed.roll(1, dims=1)"},
    ),
    Mistake(
        "no_positions",
        "no positions are added",
        "tokens + pos_embed",
        "Without them a shuffled image looks the same.",
        "Add pos_embed at the end.",
        {"return tokens + pos_embed": "return tokens"},
    ),
    Mistake(
        "positions_multiplied",
        "positions are multiplied, not added",
        "tokens + pos_embed",
        "A position near 0 would erase its token.",
        "Use + between tokens and positions.",
        {"tokens + pos_embed": "tokens * pos_embed"},
    ),
    Mistake(
        "positions_twice",
        "the patches get their positions twice",
        "tokens + pos_embed, once",
        "Positions would weigh twice as much as the text says.",
        "Add them in one place, to all tokens.",
        {
            "return tokens + pos_embed": "return tokens + torch.cat([pos_embed[:, :1], 2 * pos_embed[:, 1:]], dim=1)"
        },
    ),
    Mistake(
        "not_expanded",
        "there is one class token for the whole batch",
        "a class token for every image",
        "torch.cat needs as many of them as there are images.",
        "Expand the class token to the batch.",
        {"cls = cls_token.expand(B, -1, -1)": "cls = cls_token"},
    ),
    Mistake(
        "first_image_only",
        "only the first image gets the class token",
        "every image of the batch starts with it",
        "The others would start with nothing.",
        "Expand the class token to the batch.",
        {
            "cls = cls_token.expand(B, -1, -1)": "cls = torch.cat([cls_token, cls_token.new_zeros(B - 1, 1, D)])"
        },
    ),
    Mistake(
        "class_token_random",
        "another vector than the given class token stands first",
        "the given cls_token",
        "It is a parameter: it has to be the one that training changes.",
        "Use the argument, not new zeros.",
        {".expand(B, -1, -1)": ".expand(B, -1, -1) * 0"},
    ),
    Mistake(
        "class_token_added",
        "the class token is added to every token",
        "the class token is one more token",
        "Added to all, it would be one more bias.",
        "Join it along the token axis with torch.cat.",
        {"patch_tokens], dim=1)": "patch_tokens], dim=1) + cls_token"},
        also=(
            {
                "torch.cat([cls, patch_tokens], dim=1)": "patch_tokens + cls",
                "tokens + pos_embed": "tokens + pos_embed[:, 1:]",
            },
        ),
    ),
    Mistake(
        "class_token_over_patch",
        "the class token takes the place of the first patch",
        "N patches and one token more",
        "The top left corner of the image would be lost.",
        "Join it in front with torch.cat.",
        {
            "[cls, patch_tokens]": "[cls, patch_tokens[:, 1:]]",
            "tokens + pos_embed": "tokens + pos_embed[:, :N]",
        },
    ),
    Mistake(
        "positions_beside",
        "the positions stand beside the tokens' columns",
        "tokens + pos_embed, D columns",
        "The blocks expect D columns.",
        "Add them.",
        {
            "return tokens + pos_embed": "return torch.cat([tokens, pos_embed.expand(B, -1, -1)], dim=2)"
        },
    ),
)


def by_repeat(patch_tokens, cls_token, pos_embed):
    return torch.cat((cls_token.repeat(len(patch_tokens), 1, 1), patch_tokens), 1) + pos_embed


def in_two_parts(patch_tokens, cls_token, pos_embed):
    first = (cls_token + pos_embed[:, :1]).expand(patch_tokens.shape[0], 1, patch_tokens.shape[2])
    return torch.hstack([first, patch_tokens + pos_embed[:, 1:]])


def by_padding(patch_tokens, cls_token, pos_embed):
    room = F.pad(patch_tokens, (0, 0, 1, 0))
    mask = torch.zeros(1, room.shape[1], 1, dtype=room.dtype, device=room.device)
    mask[:, 0] = 1
    return room + mask * cls_token + pos_embed


def by_filling(patch_tokens, cls_token, pos_embed):
    B, N, D = patch_tokens.shape
    out = patch_tokens.new_empty(B, N + 1, D)
    out[:, 0] = cls_token[0, 0]
    out[:, 1:] = patch_tokens
    return out.add(pos_embed)


CHECKER = Checker(
    "add_class_token_and_positions",
    cases=shaped(
        "patch_tokens: B N D; cls_token: 1 1 D; pos_embed: 1 N+1 D",
        also("other sizes", "as many patches as columns", N="D"),
        also("other sizes", "one patch", N=1),
        also("other sizes", "one column", D=1),
        also(
            "other sizes",
            "positions of zero",
            values={"pos_embed": torch.zeros_like},
            gradients=("pos_embed",),
        ),
        also("other sizes", "as many images as patches", B="N"),
        *USUAL,
        ranges={"B": (3, 9), "N": (3, 9), "D": (3, 9)},  # a 2 that somebody wrote is none of them
        name="{B:image} of {N:patch token}, embed_dim {D}",
    ),
    proves={
        "values": "the class token first, and every token at its position",
        "other sizes": "also for one image, one patch, as many patches as columns, and float64",
    },
    equivalent={
        UNUSED_SIZES: ("B, D, N = patch_tokens.shape",),
        "the class token has one row already": ("cls = cls_token.expand(B, 1, -1)",),
    },
    special="len(patch_tokens) == 1; patch_tokens.shape[1] == 1; patch_tokens.shape[2] == 1; "
    "patch_tokens.shape[1] == patch_tokens.shape[2]; len(patch_tokens) == patch_tokens.shape[1]",
)
