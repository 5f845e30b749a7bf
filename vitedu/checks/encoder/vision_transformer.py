import torch
import torch.nn.functional as F
from torch import nn

from vitedu.checks import inputs
from vitedu.checks.kit import Case, Checker, Config, Mistake, distinct, draw, normal, plural, usual
from vitedu.vit import VisionTransformer


def cases(g: torch.Generator) -> list[Case]:
    """Draw small models whose sizes all differ."""

    def case(B, fields, note="", dtype=torch.float32, part="other sizes", scale=1.0, **rest):
        config = Config(**fields)
        state = inputs.random_state(VisionTransformer, [config.build()], g, dtype)
        for name in ("cls_token", "pos_embed"):
            state[name] *= scale
        side = fields["image_size"]
        images = normal(g, B, fields["in_channels"], side, side, dtype=dtype)
        if dtype == torch.float32:
            rest |= {"rtol": 1e-3, "atol": 2e-4}
        rest |= {"driver": "module", "init": {"config": config}, "outputs": ("logits",)}
        name = f"{plural(B, 'image')}, {config}{note}"
        return Case(name, {"images": images}, part, state=state, **rest)

    heads = draw(g, 2, 3)
    D = heads * draw(g, 3, 5)
    B, C = distinct(g, 2, 2, 4)
    K, P = draw(g, 5, 9), draw(g, 2, 3)
    side, depth = draw(g, 2, 4), draw(g, 2, 3)
    fields = {
        "image_size": side * P,
        "patch_size": P,
        "in_channels": C,
        "num_classes": K,
        "embed_dim": D,
        "depth": depth,
        "num_heads": heads,
        "mlp_ratio": 2.0,
    }
    shallow = fields | {"depth": 1}
    one = {"image_size": P, "num_classes": 1}
    deep = {"image_size": 2, "patch_size": 1, "embed_dim": 4, "num_heads": 2, "depth": 25}
    square = shallow | {"image_size": 3 * P, "embed_dim": 9, "num_heads": 3}
    return [
        case(B, fields, part="values", gradients=("images",)),
        case(1, shallow | {"in_channels": 1}),
        case(B, square, ", as many patches as columns"),
        case(B, shallow | {"qkv_bias": False}),
        case(B, fields | {"depth": 0}),
        # of a variance near the norm's eps of 1e-6
        case(B, fields | {"depth": 0}, ", a tiny class token", scale=1e-3),
        case(1, shallow | deep, ", one block more than ViT-L"),
        case(B, shallow | one, ", in train mode", extra={"training": True}),
        *usual(case, B, shallow),
    ]


MISTAKES = (
    Mistake(
        "no_positions",
        "no positions are added",
        "class token and patches plus pos_embed",
        "The model could not tell a shuffled image from the image.",
        "Add pos_embed before the first block.",
        {", self.pos_embed)": ", 0 * self.pos_embed)"},
    ),
    Mistake(
        "positions_on_patches_only",
        "the class token gets no position",
        "pos_embed has a row for it too",
        "Its row would never learn.",
        "Add pos_embed after the class token has joined.",
        {"self.pos_embed)": "F.pad(self.pos_embed[:, 1:], (0, 0, 1, 0)))"},
    ),
    Mistake(
        "class_token_last",
        "the class token stands last",
        "tokens[:, 0] is the class token",
        "Its position is row 0 of pos_embed.",
        "Look at the order in torch.cat.",
        {
            "add_class_token_and_positions(x, self.cls_token, self.pos_embed)": "torch.cat([x, self.cls_token.expand(len(x), -1, -1)], 1) + self.pos_embed",
            "x[:, 0]": "x[:, -1]",
        },
    ),
    Mistake(
        "patch_read",
        "the head reads a patch, not the class token",
        "tokens[:, 0], and the class token stands there",
        "The class token joined behind the patches, or another token is read.",
        "Look at the order in torch.cat.",
        {
            "add_class_token_and_positions(x, self.cls_token, self.pos_embed)": "torch.cat([x, self.cls_token.expand(len(x), -1, -1)], 1) + self.pos_embed"
        },
    ),
    Mistake(
        "blocks_apart",
        "every block starts from the embedded tokens",
        "each block goes on where the last one ended",
        "Only the last block would count.",
        "Look at what you hand to a block, and where its result goes.",
        {"for block": "first = x\nfor block", "block(x)": "block(first)"},
    ),
    Mistake(
        "norm_in_the_loop",
        "the final norm comes after every block",
        "one norm behind the last block",
        "Each block would find the tokens at one scale, as in post-norm.",
        "Move the norm behind the loop.",
        {"x = block(x)": "x = self.norm(block(x))", "x = self.norm(x)": "x = x"},
        also=({"x = block(x)": "x = self.norm(block(x))"},),
    ),
    Mistake(
        "no_final_norm",
        "the final norm is missing",
        "norm after the last block, before the head",
        "The tokens of a pre-norm model grow with depth; the head needs them at one scale.",
        "Use self.norm.",
        {"self.norm(x)": "x"},
    ),
    Mistake(
        "norm_again",
        "the final norm is not the model's own",
        "self.norm, whose eps is 1e-6",
        "torch's default is 1e-5: tokens that hardly vary would come out smaller.",
        "Call self.norm.",
        {"self.norm(x)": "F.layer_norm(x, x.shape[-1:], self.norm.weight, self.norm.bias)"},
        part="other sizes",
    ),
    Mistake(
        "norm_first",
        "the norm stands before the blocks",
        "norm after the last block",
        "What comes out of the blocks would reach the head at any scale.",
        "Look at where self.norm is called.",
        {"for block": "x = self.norm(x)\nfor block", "self.norm(x)": "x"},
    ),
    Mistake(
        "head_on_mean",
        "the head reads the mean of all tokens",
        "the class token",
        "A good choice, and another one: the mean includes the class token here.",
        "Take token 0.",
        {"x[:, 0]": "x.mean(dim=1)"},
    ),
    Mistake(
        "head_on_patch_mean",
        "the head reads the mean of the patch tokens",
        "the class token",
        "Many later ViTs do so; the textbook model has a class token for it.",
        "Take token 0.",
        {"x[:, 0]": "x[:, 1:].mean(dim=1)"},
    ),
    Mistake(
        "head_on_last_token",
        "the head reads the last token",
        "the class token, token 0",
        "The last token is a patch, at the bottom right.",
        "Look at the index.",
        {"x[:, 0]": "x[:, -1]"},
    ),
    Mistake(
        "head_on_first_patch",
        "the head reads the first patch",
        "the class token, token 0",
        "Token 1 is the patch at the top left.",
        "Look at the index.",
        {"x[:, 0]": "x[:, 1]"},
    ),
    Mistake(
        "all_tokens",
        "the head is applied to every token",
        "one row of logits for an image",
        "Only one token speaks for the image.",
        "Pick the class token first.",
        {"x[:, 0]": "x"},
    ),
    Mistake(
        "no_head",
        "the class token is returned, not the logits",
        "logits, one for each class",
        "A feature is not yet an answer.",
        "Use self.head.",
        {"self.head(x)": "x"},
    ),
    Mistake(
        "probabilities",
        "softmax is applied to the logits",
        "logits, as they come from the head",
        "cross_entropy applies softmax itself; twice flattens the gradient.",
        "Return what the head gives.",
        {"self.head(x)": "self.head(x).softmax(dim=-1)"},
    ),
    Mistake(
        "first_block_only",
        "the first block is used again and again",
        "every block once, in order",
        "The others would never learn.",
        "Look at what the loop calls.",
        {"= block(x)": "= self.blocks[0](x)"},
    ),
    Mistake(
        "blocks_reversed",
        "the blocks run in reverse",
        "blocks 0, 1, 2 ...",
        "Trained weights belong to their place.",
        "Look at the loop.",
        {"in self.blocks:": "in reversed(self.blocks):"},
    ),
    Mistake(
        "last_block_left_out",
        "the last block is left out",
        "every block once",
        "Off by one.",
        "Look at where the loop ends.",
        {"in self.blocks:": "in self.blocks[:-1]:"},
    ),
    Mistake(
        "first_blocks_only",
        "deeper models are cut short",
        "config.depth blocks",
        "Other sizes have 12, 24 or 32.",
        "Go through all of self.blocks.",
        {"in self.blocks:": "in self.blocks[:6]:"},
        part="other sizes",
        also=(
            {"in self.blocks:": "in self.blocks[:12]:"},
            {"in self.blocks:": "in self.blocks[:24]:"},
        ),
    ),
    Mistake(
        "blocks_unused",
        "what the blocks do does not reach the class token",
        "every block works on all tokens that the one before returned",
        "A block changes nothing in place: it returns new tokens. And the class token joins before the first block.",
        "Look at the left side of the line that calls a block, and at what goes in.",
        {"x = block(x)": "block(x)"},
    ),
    Mistake(
        "added_around_blocks",
        "a path leads around every block as well",
        "x = block(x)",
        "The blocks have their own two paths inside.",
        "Do not add x again.",
        {"= block(x)": "= x + block(x)"},
    ),
    Mistake(
        "patches_reshaped",
        "the patch features are reshaped, not transposed",
        "token i holds all channels of patch i",
        "A reshape would mix channels and patches.",
        "From (B, D, N) to (B, N, D) it takes a transpose.",
        {"self.patch_embed(images)": "self.patch_embed(images)\nx = x.mT.reshape(x.shape)"},
    ),
    Mistake(
        "patches_by_column",
        "the patches run down the columns",
        "row by row, as patchify numbers them",
        "Every patch would get another's position.",
        "flatten(2) keeps rows together.",
        {
            "self.patch_embed(images)": "self.patch_embed(images)\nx = x.unflatten(1, self.config.grid_size).transpose(1, 2).flatten(1, 2)"
        },
    ),
)


class Plain(VisionTransformer):
    def forward(self, images):
        x = self.patch_embed.proj(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.repeat(x.size(0), 1, 1), x), dim=1)
        x = x + self.pos_embed
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        return self.head(self.norm(x)[:, 0, :])


class Sequential(VisionTransformer):
    """The class token is picked before the norm, which is the same."""

    def forward(self, images):
        patches = self.patch_embed(images) + self.pos_embed[:, 1:]
        first = (self.cls_token + self.pos_embed[:, :1]).expand(len(images), -1, -1)
        encoded = nn.Sequential(*self.blocks)(torch.hstack([first, patches]))
        return self.head(self.norm(encoded.select(1, 0)))


class Unfolded(VisionTransformer):
    def forward(self, images):
        kernel = self.patch_embed.proj.weight
        columns = F.unfold(images, kernel.shape[-1], stride=kernel.shape[-1]).mT
        tokens = columns @ kernel.flatten(1).T + self.patch_embed.proj.bias
        x = F.pad(tokens, (0, 0, 1, 0)).clone()
        x[:, 0] = self.cls_token.squeeze()
        x = x + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x)[:, 0], self.head.weight, self.head.bias)


class ImageByImage(VisionTransformer):
    def forward(self, images):
        rows = []
        for image in images:
            x = torch.cat([self.cls_token[0], self.patch_embed(image[None])[0]]) + self.pos_embed[0]
            x = x[None]
            for block in self.blocks:
                x = block(x)
            rows.append(self.head(self.norm(x[0, 0])))
        return torch.stack(rows)


CHECKER = Checker(
    "VisionTransformer",
    proves={
        "values": "logits equal to the definition at random weights",
        "other sizes": "also for one image, one channel, no qkv bias and float64",
    },
    special="len(images) == 1; images.shape[1] == 1; len(self.blocks) == 0; "
    "len(self.blocks) == 1; self.patch_embed.proj.kernel_size[0] == images.shape[2]; "
    "self.head.out_features == 1",
    given=("__init__",),
    left_open={
        "pool is a field of this package; the contract's model reads its class token": (
            "mean(dim=0)",
            "mean(dim=2)",
            "x = x[:, 0]",
            "mean(dim=-1)",
            "mean(dim=-2)",
            "x.sum(dim=1)",
            "else x.mean()",
            "pool <= 'cls' else",
            "pool >= 'cls' else",
            "x = x[:, 0] if self.config.pool == 'cls' else x",
        ),
    },
)
