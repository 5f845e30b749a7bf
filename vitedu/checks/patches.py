"""Checkers of notebook 01: patches, class token, positions."""

import math

import torch
from torch import nn

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import draw_patch_order
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal, plural
from vitedu.checks.probing import Case
from vitedu.checks.recipes import Conv
from vitedu.checks.values import ValueChecker, ValueMistake

# --- patchify -----------------------------------------------------------------------------------


def patchify_cases(g: torch.Generator) -> list[Case]:
    """Draw images whose batch, channels, patch and grid sizes all differ."""

    def case(B, C, gh, gw, P, **rest):
        dtype = rest.pop("dtype", torch.float32)
        images = normal(g, B, C, gh * P, gw * P, dtype=dtype)
        name = f"{plural(B, 'image')} of {plural(C, 'channel')}, {gh * P} x {gw * P} px, patch_size {P}"
        return Case(
            name + rest.pop("note", ""),
            {"images": images, "patch_size": P},
            rtol=1e-6,
            atol=1e-6,
            **rest,
        )

    P, gh, gw = distinct(g, 3, 2, 5)
    B, C = distinct(g, 2, 2, 4)
    H = gh * P + draw(g, 1, P - 1)
    return [
        case(B, C, gh, gw, P, gradients=("images",)),
        case(B, C, gh, gh, P, part="other sizes", note=", square"),
        case(1, C, gw, gh, P, part="other sizes", note=", a batch of one"),
        case(B, 1, gh, gw, 1, part="other sizes", note=", patches of one pixel"),
        case(B, C, gh, gw, P, part="other sizes", dtype=torch.float64, note=", float64"),
        Case(
            f"H={H} is not divisible by patch_size {P}",
            {"images": normal(g, B, C, H, gw * P), "patch_size": P},
            part="errors", raises="ValueError", mentions=(H, P),
        ),
        Case(
            f"W={H} is not divisible by patch_size {P}, but H * W is by its square",
            {"images": normal(g, B, C, P * P, H), "patch_size": P},
            part="errors", raises="ValueError", mentions=(H, P),
        ),
        Case(
            "images on an accelerator", {"images": normal(g, B, C, gh * P, gw * P), "patch_size": P},
            part="any device", on_accelerator=True,
        ),
    ]  # fmt: skip


def faulty_patchify(mistakes: frozenset[str]):
    """Cut with the named mistakes made."""

    def patchify(images, patch_size):
        B, C, H, W = images.shape
        P = patch_size
        gh, gw = H // P, W // P
        if H % P or W % P:
            return reference.patchify(images, patch_size)
        if "square_only" in mistakes:
            gw = gh
        if "reshape_only" in mistakes:
            return images.reshape(B, gh * gw, C * P * P)
        if "channels_outside" in mistakes:  # cut without giving each patch its channels
            return images.reshape(B, C, gh, P, gw, P).transpose(3, 4).reshape(B, gh * gw, C * P * P)
        x = images.reshape(B, C, gh, P, gw, P).permute(0, 2, 4, 1, 3, 5)  # (B, gh, gw, C, P, P)
        if "patches_by_column" in mistakes:
            x = x.transpose(1, 2)
        if "channel_last" in mistakes:
            x = x.permute(0, 1, 2, 4, 5, 3)
        if "pixels_by_column" in mistakes:
            x = x.transpose(-1, -2) if "channel_last" not in mistakes else x.transpose(-2, -3)
        if "bottom_up" in mistakes:
            x = x.flip(1)
        return x.reshape(B, gh * gw, C * P * P)

    return patchify


PATCHIFY_BANK = (
    Misconception(
        "reshape_only", "the image is reshaped without moving any axis",
        "patch 0 holds the top left corner of every channel",
        "The memory of an image runs along its rows: a bare reshape cuts strips out of rows, not squares.",
        "Split H into (gh, P) and W into (gw, P) first, then permute, then join.",
    ),
    Misconception(
        "channels_outside", "the patches are cut, but each holds one channel's pixels of several places",
        "one patch holds all channels of its square",
        "A patch is a small image: all its channels belong together.",
        "In permute, the channel axis has to move behind both grid axes.",
    ),
    Misconception(
        "patches_by_column", "patches run down the columns instead of along the rows",
        "patch 1 stands to the right of patch 0",
        "Position i would belong to another place than the rest of the course, and every library, believes.",
        "Look at the order of the two grid axes after permute: gh before gw.",
    ),
    Misconception(
        "channel_last", "inside a patch the order is row, column, channel",
        "inside a patch: channel, then row, then column",
        "It is TensorFlow's order; the weights of a torch convolution would not fit these patches.",
        "Keep the channel axis before both pixel axes: (B, gh, gw, C, P, P).",
    ),
    Misconception(
        "pixels_by_column", "inside a patch the pixels run down the columns",
        "inside a patch the pixels run along the rows",
        "Each patch comes out mirrored along its diagonal.",
        "Look at the order of the last two axes after permute: rows before columns.",
    ),
    Misconception(
        "bottom_up", "patches start at the bottom left",
        "patch 0 is the top left corner",
        "Row 0 of an image tensor is its top row.",
        "Look for a flip, or for a loop that counts down.",
    ),
    Misconception(
        "square_only", "the grid is taken to be square",
        "gh = H / P and gw = W / P, each by itself",
        "It works on square images and breaks on the first photograph.",
        "Compute the number of patches across from W.",
    ),
)  # fmt: skip

# --- unpatchify ---------------------------------------------------------------------------------


def unpatchify_cases(g: torch.Generator) -> list[Case]:
    """Draw patch sequences whose sizes all differ."""

    def case(B, C, gh, gw, P, dtype=torch.float32, note="", **rest):
        patches = normal(g, B, gh * gw, C * P * P, dtype=dtype)
        name = f"{B} x {gh * gw} patches of {plural(C, 'channel')}, patch_size {P}, image {gh * P} x {gw * P}{note}"
        args = {"patches": patches, "patch_size": P, "image_size": (gh * P, gw * P)}
        return Case(name, args, rtol=1e-6, atol=1e-6, **rest)

    P, gh, gw = distinct(g, 3, 2, 5)
    B, C = distinct(g, 2, 2, 4)
    return [
        case(B, C, gh, gw, P, gradients=("patches",)),
        # other channels and patches: C is 3 or P*P, and N a multiple of P*P, in one of the two at most
        case(B, C + 2, P + 2, P + 2, P + 1, part="other sizes", note=", square"),
        case(1, C, gw, gh, P, part="other sizes", note=", a batch of one"),
        case(B, 1, gh, gw, 1, part="other sizes", note=", patches of one pixel"),
        case(B, C, gh, gw, P, part="other sizes", dtype=torch.float64, note=", float64"),
        case(B, C, gh, gw, P, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_unpatchify(mistakes: frozenset[str]):
    """Join with the named mistakes made."""

    def unpatchify(patches, patch_size, image_size):
        B, N, length = patches.shape
        P = patch_size
        H, W = image_size
        if "size_is_width_height" in mistakes:
            H, W = W, H
        gh, gw = H // P, W // P
        if "square_only" in mistakes:
            gh = gw = math.isqrt(N)
            H, W = gh * P, gw * P
        C = length // (P * P)
        if "reshape_only" in mistakes:
            return patches.reshape(B, C, H, W)
        if "three_channels" in mistakes:
            C = 3
        if "patches_by_column" in mistakes:
            x = patches.reshape(B, gw, gh, -1).transpose(1, 2)
        else:
            x = patches.reshape(B, gh, gw, -1)
        if "channel_last" in mistakes:
            x = x.reshape(B, gh, gw, P, P, C).permute(0, 1, 2, 5, 3, 4)
        else:
            x = x.reshape(B, gh, gw, C, P, P)
        if "pixels_by_column" in mistakes:
            x = x.transpose(-1, -2)
        if "axes_unmixed" in mistakes:  # (B, C, gh, gw, P, P): grid beside pixels, then a reshape
            return x.permute(0, 3, 1, 2, 4, 5).reshape(B, C, H, W)
        return x.permute(0, 3, 1, 4, 2, 5).reshape(B, C, H, W)

    return unpatchify


UNPATCHIFY_BANK = (
    Misconception(
        "reshape_only", "the patches are reshaped without moving any axis", "unpatchify(patchify(x)) == x",
        "A patch is contiguous in the sequence, but not in the image.",
        "Undo patchify step by step: split, permute back, join.",
    ),
    Misconception(
        "axes_unmixed", "the grid axes and the pixel axes are joined in the wrong pairs", "(gh, P) become H, (gw, P) become W",
        "A row of the image passes through gw patches before the next pixel row begins.",
        "Before the last reshape the axes must read (B, C, gh, P, gw, P).",
    ),
    Misconception(
        "channel_last", "the pixels are read as row, column, channel", "inside a patch: channel, row, column",
        "It must be the order that patchify wrote.", "Split the last axis into (C, P, P), channels first.",
    ),
    Misconception(
        "patches_by_column", "the patches are laid down the columns", "patch 1 stands to the right of patch 0",
        "It must be the order that patchify wrote.", "Split N into (gh, gw), in this order.",
    ),
    Misconception(
        "pixels_by_column", "the pixels of each patch are laid down its columns", "pixels run along rows",
        "Each patch comes out mirrored along its diagonal.", "Look at the order of the last two axes.",
    ),
    Misconception(
        "size_is_width_height", "image_size is read as (width, height)", "image_size = (H, W)",
        "In torch the height comes first.", "Unpack it as H, W = image_size.",
    ),
    Misconception(
        "square_only", "the grid is taken to be square", "gh = H / P and gw = W / P",
        "The square root of N says nothing about the shape of the grid.", "Use image_size, which says it.",
    ),
    Misconception(
        "three_channels", "three channels are taken for granted", "C from the length of a patch",
        "Grey, depth and satellite images have another number.", "C = length // patch_size**2.",
    ),
)  # fmt: skip

# --- linear_from_conv ---------------------------------------------------------------------------


def linear_cases(g: torch.Generator) -> list[Case]:
    """Draw convolutions with and without bias."""

    def case(C, P, D, bias=True, dtype=torch.float32, note="", **rest):
        conv = Conv(normal(g, D, C, P, P, dtype=dtype), normal(g, D, dtype=dtype) if bias else None)
        name = f"Conv2d({C}, {D}, kernel_size={P}, stride={P}, bias={bias}){note}"
        rest.setdefault("driver", "layer_from_layer")
        return Case(name, {"conv": conv}, outputs=("weight",), rtol=1e-6, atol=1e-6, **rest)

    P, C = distinct(g, 2, 2, 5)
    D = draw(g, 6, 9)
    return [
        case(C, P, D),
        case(C, P, D, bias=False, part="without bias"),
        case(1, P, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(C, 1, D, part="other sizes", note=", patches of one pixel"),
        case(C, P, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_linear(mistakes: frozenset[str]):
    """Convert with the named mistakes made."""

    def linear_from_conv(conv):
        D, C, P, _ = conv.weight.shape
        weight = conv.weight.detach()
        if "channel_last" in mistakes:
            weight = weight.permute(0, 2, 3, 1)
        if "pixels_by_column" in mistakes:
            weight = weight.transpose(-1, -2)
        if "rotated_kernel" in mistakes:
            weight = weight.flip(-1, -2)
        flat = weight.reshape(D, -1)
        if "reshaped_transpose" in mistakes:
            flat = weight.flatten(1).T.reshape(D, -1)
        dtype = torch.float32 if "default_dtype" in mistakes else conv.weight.dtype
        bias = (
            True
            if "always_bias" in mistakes
            else False
            if "never_bias" in mistakes
            else conv.bias is not None
        )
        linear = nn.Linear(C * P * P, D, bias=bias, dtype=dtype, device=weight.device)
        with torch.no_grad():
            if "values_not_copied" in mistakes:
                linear.weight.fill_(0.0)
            else:
                linear.weight.copy_(flat)
            if linear.bias is not None:
                linear.bias.zero_()
                if conv.bias is not None and "bias_not_copied" not in mistakes:
                    linear.bias.copy_(conv.bias)
            if "values_shared" in mistakes:
                linear.weight = nn.Parameter(conv.weight.data.view(D, -1))
            if "bias_shared" in mistakes and conv.bias is not None:
                linear.bias = conv.bias
        return linear

    return linear_from_conv


LINEAR_BANK = (
    Misconception(
        "channel_last", "the kernel is flattened as row, column, channel", "the order of patchify: channel, row, column",
        "Weights and pixels must be flattened alike.", "conv.weight has the axes (D, C, P, P); look at its order when you flatten.",
    ),
    Misconception(
        "pixels_by_column", "the kernel is transposed", "rows before columns", "Weights and pixels must be flattened alike.",
        "Flatten the kernel as it stands.",
    ),
    Misconception(
        "rotated_kernel", "the kernel is rotated by half a turn", "the kernel as it stands",
        "The convolution of deep learning is a correlation: the kernel is not flipped.", "Leave out the flip.",
    ),
    Misconception(
        "reshaped_transpose", "the matrix is transposed and reshaped back", "linear.weight of shape (D, C*P*P), row i for output i",
        "nn.Linear keeps its weight as (out_features, in_features), which is what flatten(1) gives.", "Leave out the transpose.",
    ),
    Misconception(
        "bias_not_copied", "the bias is not copied", "linear.bias equal to conv.bias", "Every output is off by its bias.",
        "Copy both parameters.",
    ),
    Misconception(
        "always_bias", "the linear layer has a bias where the convolution has none", "a bias if and only if conv has one",
        "It would add a parameter that the convolution does not have.", "Give nn.Linear bias=conv.bias is not None.",
    ),
    Misconception(
        "never_bias", "the linear layer has no bias", "a bias if and only if conv has one",
        "What the convolution adds to every output would be lost.", "Give nn.Linear bias=conv.bias is not None.",
    ),
    Misconception(
        "values_not_copied", "the weights are not those of the convolution", "the values of conv",
        "A fresh nn.Linear starts with values of its own.", "Copy under torch.no_grad(): linear.weight.copy_(...).",
    ),
    Misconception(
        "default_dtype", "the layer has torch's default dtype", "the dtype of conv", "The next float64 input would fail.",
        "Give nn.Linear dtype=conv.weight.dtype.",
    ),
    Misconception(
        "values_shared", "the layer shares its memory with the convolution", "a copy of its own",
        "Training one would change the other.", "Copy the values, or clone them.", part="a copy of its own",
    ),
    Misconception(
        "bias_shared", "the bias is the convolution's own", "a copy of its own",
        "Training one would change the other.", "Copy both parameters.", part="a copy of its own",
    ),
    Misconception(
        "own_device", "the layer is made on the CPU, wherever the convolution is", "the device of conv",
        "On a GPU the next input and the layer could not meet.", "Give nn.Linear device=conv.weight.device.",
        part="any device", build=lambda: lambda conv: reference.linear_from_conv(conv).cpu(),
    ),
)  # fmt: skip

# --- add_class_token_and_positions --------------------------------------------------------------


def token_cases(g: torch.Generator) -> list[Case]:
    """Draw patch tokens, a class token and positions whose sizes all differ."""

    def case(B, N, D, dtype=torch.float32, note="", **rest):
        args = {
            "patch_tokens": normal(g, B, N, D, dtype=dtype),
            "cls_token": normal(g, 1, 1, D, dtype=dtype),
            "pos_embed": normal(g, 1, N + 1, D, dtype=dtype),
        }
        return Case(f"{plural(B, 'image')} of {N} patch tokens, embed_dim {D}{note}", args, **rest)

    B, N, D = distinct(g, 3, 2, 9)
    return [
        case(B, N, D, gradients=("patch_tokens", "cls_token", "pos_embed")),
        case(1, N, D + 1, part="other sizes"),
        case(B, D, D, part="other sizes", note=", as many patches as columns"),
        case(B, 1, D, part="other sizes", note=", one patch"),
        case(B, N, D, dtype=torch.float64, part="other sizes", note=", float64"),
        case(B, N, D, part="any device", on_accelerator=True, note=", on an accelerator"),
    ]


def faulty_tokens(mistakes: frozenset[str]):
    """Assemble with the named mistakes made."""

    def add_class_token_and_positions(patch_tokens, cls_token, pos_embed):
        B, N, D = patch_tokens.shape
        cls = cls_token.expand(B, -1, -1)
        if "first_image_only" in mistakes:
            cls = torch.cat([cls_token, torch.zeros_like(cls[1:])])
        if "class_token_random" in mistakes:
            cls = torch.zeros_like(cls)
        if "positions_on_patches_only" in mistakes:
            positions = torch.cat([torch.zeros_like(pos_embed[:, :1]), pos_embed[:, 1:]], dim=1)
        elif "positions_shifted" in mistakes:
            positions = pos_embed.roll(1, dims=1)
        elif "no_positions" in mistakes:
            positions = torch.zeros_like(pos_embed)
        elif "positions_multiplied" in mistakes:
            positions = None
        else:
            positions = pos_embed
        if "class_token_last" in mistakes:
            tokens = torch.cat([patch_tokens, cls], dim=1)
        else:
            tokens = torch.cat([cls, patch_tokens], dim=1)
        if "class_token_added" in mistakes:
            tokens = tokens + cls_token
        return tokens * pos_embed if positions is None else tokens + positions

    return add_class_token_and_positions


TOKEN_BANK = (
    Misconception(
        "class_token_last", "the class token stands last", "tokens[:, 0] is the class token plus its position",
        "The head, published weights and position 0 expect it first.", "Look at the order of the two tensors in torch.cat.",
    ),
    Misconception(
        "positions_on_patches_only", "the class token gets no position", "pos_embed has N+1 rows, one for the class token",
        "Its own row is learned like the others.", "Add pos_embed after the class token has joined, to all tokens.",
    ),
    Misconception(
        "positions_shifted", "every token gets the position of its neighbour", "row i of pos_embed belongs to token i",
        "Row 0 is the class token's.", "Look for a roll, or for positions that are joined in another order than the tokens.",
    ),
    Misconception(
        "no_positions", "no positions are added", "tokens + pos_embed", "Without them a shuffled image looks the same.",
        "Add pos_embed at the end.",
    ),
    Misconception(
        "positions_multiplied", "positions are multiplied, not added", "tokens + pos_embed",
        "A position near 0 would erase its token.", "Use + between tokens and positions.",
    ),
    Misconception(
        "first_image_only", "only the first image gets the class token", "every image of the batch starts with it",
        "The others would start with nothing.", "Expand the class token to the batch.",
    ),
    Misconception(
        "class_token_random", "another vector than the given class token stands first", "the given cls_token",
        "It is a parameter: it has to be the one that training changes.", "Use the argument, not new zeros.",
    ),
    Misconception(
        "class_token_added", "the class token is added to every token", "the class token is one more token",
        "Added to all, it would be one more bias.", "Join it along the token axis with torch.cat.",
    ),
)  # fmt: skip

# --- sincos_positions ---------------------------------------------------------------------------


def sincos_cases(g: torch.Generator) -> list[Case]:
    """Draw table sizes; position 0, short and long tables, two columns."""

    def case(n, D, **rest):
        # float32 formulas differ by some units in the last place of the angle, which grows with n
        return Case(
            f"{n} positions, embed_dim {D}",
            {"num_positions": n, "embed_dim": D},
            rtol=0,
            atol=2e-4,
            **rest,
        )

    n, half = distinct(g, 2, 3, 9)
    odd = 2 * draw(g, 2, 9) + 1
    return [
        case(n, 2 * half),
        case(2 * half + 1, 2 * half, part="other sizes"),
        case(200, 16 + 2 * half, part="other sizes"),  # long enough to tell 10000 from 9999
        case(n, 2, part="other sizes"),
        case(1, 2 * half, part="other sizes"),
        Case(
            f"embed_dim {odd} is odd",
            {"num_positions": n, "embed_dim": odd},
            part="errors",
            raises="ValueError",
        ),
    ]


def faulty_sincos(mistakes: frozenset[str]):
    """Fill the table with the named mistakes made."""

    def sincos_positions(num_positions, embed_dim):
        n, D = num_positions, embed_dim
        if D % 2:
            return reference.sincos_positions(n, D)
        position = torch.arange(n, dtype=torch.float64).unsqueeze(1)
        if "positions_from_one" in mistakes:
            position = position + 1
        pair = torch.arange(D // 2, dtype=torch.float64)
        sine_exponent, cosine_exponent = 2 * pair / D, 2 * pair / D
        if "pair_over_dim" in mistakes:
            sine_exponent = cosine_exponent = pair / D
        if "each_column_its_own" in mistakes:
            cosine_exponent = (2 * pair + 1) / D
        if "reaches_the_base" in mistakes:
            sine_exponent = cosine_exponent = pair / max(1, D // 2 - 1)
        base = 1000.0 if "another_base" in mistakes else 10000.0
        sign = 1 if "frequencies_rise" in mistakes else -1
        sine, cosine = (position * base ** (sign * e) for e in (sine_exponent, cosine_exponent))
        if "degrees" in mistakes:
            sine, cosine = torch.deg2rad(sine), torch.deg2rad(cosine)
        columns = [sine.sin(), cosine.cos()]
        if "cosine_first" in mistakes:
            columns.reverse()
        if "sines_then_cosines" in mistakes:
            return torch.cat(columns, dim=1).float()
        return torch.stack(columns, dim=-1).flatten(1).float()

    return sincos_positions


SINCOS_BANK = (
    Misconception(
        "sines_then_cosines", "all sines come first, then all cosines", "even columns sine, odd columns cosine",
        "Both layouts are in use; this course, like the paper, takes turns.",
        "Fill table[:, 0::2] and table[:, 1::2], or stack the pairs and flatten.",
    ),
    Misconception(
        "cosine_first", "even columns hold the cosine", "even columns sine, odd columns cosine",
        "Row 0 shows it: sin 0 and cos 0 take turns.", "Look at which of the two goes to column 0.",
    ),
    Misconception(
        "pair_over_dim", "the exponent runs only half as far", "10000 to the power 2i/D for column pair i",
        "The slowest wave would be a hundred times too fast.", "Look at the exponent: i counts pairs of columns, 2i the columns.",
    ),
    Misconception(
        "each_column_its_own", "sine and cosine of a pair have different frequencies", "one angle for both columns of a pair",
        "Only with the same angle is a shift of positions a rotation.", "Use the same 2i for columns 2i and 2i+1.",
    ),
    Misconception(
        "reaches_the_base", "the exponent reaches 1 at the last pair", "exponents 2i/D, the last one below 1",
        "Some libraries do so; the formula of the paper divides by D.", "Look at the denominator of the exponent.",
    ),
    Misconception(
        "another_base", "the base is not 10000", "base 10000", "The base sets the longest wave.", "Count the zeros.",
    ),
    Misconception(
        "frequencies_rise", "the frequencies rise from column to column", "position divided by 10000 ** (2i/D)",
        "Waves shorter than one step can not tell neighbours apart reliably.", "Divide, or use a negative exponent.",
    ),
    Misconception(
        "positions_from_one", "positions count from 1", "positions 0 .. num_positions-1", "Every row is one late.",
        "torch.arange(n) starts at 0.",
    ),
    Misconception(
        "degrees", "the angle is taken in degrees", "radians", "All waves would be 57 times too long.", "torch.sin takes radians.",
    ),
    Misconception(
        "double_table", "the table is float64", "float32, like every table made from sizes alone",
        "Added to float32 tokens it would turn all of them into float64.", "Finish with .float().",
        build=lambda: lambda num_positions, embed_dim: reference.sincos_positions(num_positions, embed_dim).double(),
    ),
)  # fmt: skip

# --- sincos_positions_2d ------------------------------------------------------------------------


def sincos_2d_cases(g: torch.Generator) -> list[Case]:
    """Draw grids that are not square, and one that is."""

    def case(gh, gw, D, **rest):
        return Case(
            f"grid {gh} x {gw}, embed_dim {D}",
            {"grid_size": (gh, gw), "embed_dim": D},
            rtol=0,
            atol=2e-4,
            **rest,
        )

    gh, gw = distinct(g, 2, 2, 6)
    D = 4 * draw(g, 2, 5)
    odd = D + 1  # half of it, cut off, is even: the table of one direction has nothing to refuse
    return [
        case(gh, gw, D),
        case(gw, gh, D, part="other sizes"),
        case(gh, gh, D, part="other sizes"),
        case(1, gw, D, part="other sizes"),
        case(gh, gw, 4, part="other sizes"),
        Case(
            f"embed_dim {odd} is not divisible by 4",
            {"grid_size": (gh, gw), "embed_dim": odd},
            part="errors",
            raises="ValueError",
        ),
        Case(
            f"embed_dim {D + 2} is not divisible by 4",
            {"grid_size": (gh, gw), "embed_dim": D + 2},
            part="errors",
            raises="ValueError",
        ),
    ]


def faulty_sincos_2d(mistakes: frozenset[str]):
    """Fill the table of a grid with the named mistakes made."""

    def sincos_positions_2d(grid_size, embed_dim):
        gh, gw = grid_size
        D = embed_dim
        if D % 4:
            return reference.sincos_positions_2d(grid_size, D)
        if "grid_is_width_height" in mistakes:
            gh, gw = gw, gh
        if "one_long_row" in mistakes:
            return reference.sincos_positions(gh * gw, D)
        rows, columns = (
            reference.sincos_positions(gh, D // 2),
            reference.sincos_positions(gw, D // 2),
        )
        if "sines_then_cosines" in mistakes:
            rows, columns = (torch.cat([x[:, 0::2], x[:, 1::2]], dim=1) for x in (rows, columns))
        if "positions_from_one" in mistakes:
            rows, columns = (
                reference.sincos_positions(gh + 1, D // 2)[1:],
                reference.sincos_positions(gw + 1, D // 2)[1:],
            )
        if "cells_by_column" in mistakes:
            halves = [rows.repeat(gw, 1), columns.repeat_interleave(gh, dim=0)]
        elif "both_repeated_alike" in mistakes:
            halves = [rows.repeat(gw, 1), columns.repeat(gh, 1)]
        else:
            halves = [rows.repeat_interleave(gw, dim=0), columns.repeat(gh, 1)]
        if "column_first" in mistakes:
            halves.reverse()
        if "halves_interleaved" in mistakes:
            return torch.stack(halves, dim=-1).flatten(1)
        if "added" in mistakes:
            return torch.cat([halves[0] + halves[1]] * 2, dim=1)
        return torch.cat(halves, dim=1)

    return sincos_positions_2d


SINCOS_2D_BANK = (
    Misconception(
        "column_first", "the column's code comes first", "the first D/2 columns encode the row",
        "Rows before columns, as everywhere in this course.", "Look at the order of the two halves in torch.cat.",
    ),
    Misconception(
        "cells_by_column", "the cells run down the columns of the grid", "cells row by row, as patchify numbers them",
        "Cell 1 stands to the right of cell 0.", "The row code repeats gw times in a row; the column code cycles.",
    ),
    Misconception(
        "both_repeated_alike", "row and column codes are repeated in the same way", "every pair of row and column once",
        "Some cells would share a code.", "One of the two has to stay while the other runs.",
    ),
    Misconception(
        "one_long_row", "the grid is coded as one long row", "row and column coded apart",
        "The cell below would look far away.", "Use sincos_positions twice, with D/2 columns each.",
    ),
    Misconception(
        "grid_is_width_height", "grid_size is read as (across, down)", "grid_size = (gh, gw), down first",
        "In torch the height comes first.", "Unpack it as gh, gw = grid_size.",
    ),
    Misconception(
        "added", "row and column codes are added", "row code beside column code",
        "A sum can not tell (2, 5) from (5, 2).", "Concatenate along the last axis.",
    ),
    Misconception(
        "halves_interleaved", "row and column codes take turns column by column", "the row's D/2 columns, then the column's",
        "The first half belongs to the row alone.", "Concatenate; do not stack.",
    ),
    Misconception(
        "sines_then_cosines", "in each half all sines come first", "each half as sincos_positions gives it",
        "The two notebooks' tables would not match.", "Call sincos_positions for each half.",
    ),
    Misconception(
        "positions_from_one", "rows and columns count from 1", "row 0 and column 0 come first", "Every cell is one late.",
        "Call sincos_positions(gh, ...) and use it from its first row.",
    ),
    Misconception(
        "double_table", "the table is float64", "float32, like every table made from sizes alone",
        "Added to float32 tokens it would turn all of them into float64.", "Finish with .float().",
        build=lambda: lambda grid_size, embed_dim: reference.sincos_positions_2d(grid_size, embed_dim).double(),
    ),
)  # fmt: skip

CHECKERS = {
    "patchify": Checker(
        "patchify", reference.patchify, patchify_cases, faulty_patchify, PATCHIFY_BANK,
        proves={
            "values": "every pixel stands where it should",
            "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
        },
        picture=draw_patch_order,
    ),
    "unpatchify": Checker(
        "unpatchify", reference.unpatchify, unpatchify_cases, faulty_unpatchify, UNPATCHIFY_BANK,
        proves={
            "values": "every pixel is back in its place",
            "other sizes": "also for squares, a batch of one, patches of one pixel and float64",
        },
    ),
    "linear_from_conv": Checker(
        "linear_from_conv",
        reference.linear_from_conv,
        linear_cases,
        faulty_linear,
        LINEAR_BANK,
        proves={
            "values": "every weight and bias stands where it should, and conv is unchanged",
            "without bias": "no bias where conv has none",
            "other sizes": "also for grey images, patches of one pixel and float64",
        },
    ),
    "add_class_token_and_positions": Checker(
        "add_class_token_and_positions",
        reference.add_class_token_and_positions,
        token_cases,
        faulty_tokens,
        TOKEN_BANK,
        proves={
            "values": "the class token first, and every token at its position",
            "other sizes": "also for one image, one patch, as many patches as columns, and float64",
        },
    ),
    "sincos_positions": Checker(
        "sincos_positions",
        reference.sincos_positions,
        sincos_cases,
        faulty_sincos,
        SINCOS_BANK,
        proves={
            "values": "sines and cosines take turns, at the right frequencies",
            "other sizes": "also for long tables, one position and two columns",
            "errors": "an odd embed_dim is refused",
        },
    ),
    "sincos_positions_2d": Checker(
        "sincos_positions_2d",
        reference.sincos_positions_2d,
        sincos_2d_cases,
        faulty_sincos_2d,
        SINCOS_2D_BANK,
        proves={
            "values": "every cell's row code, then its column code",
            "other sizes": "also for square grids, one row and four columns",
            "errors": "an embed_dim that 4 does not divide is refused",
        },
    ),
    "tokens_at_224": ValueChecker(
        "tokens_at_224", reference.tokens_at_224,
        (
            ValueMistake("no_class_token", 196, "the class token is not counted", "The patches are only part of the sequence.",
                         "The model puts one more token in front."),
            ValueMistake("one_side", 14, "one side of the grid is counted", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("one_side_and_token", 15, "one side of the grid is counted", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("pixels", 224 * 224, "pixels are counted", "A token is a patch, not a pixel.", "Divide each side by the patch size."),
            ValueMistake("values", 768, "the width of a token is given", "That is how long one token is.", "Count the tokens."),
        ),
        proves="patches down times patches across, and the class token",
    ),
    "seam_neighbours": ValueChecker(
        "seam_neighbours", reference.seam_neighbours,
        (
            ValueMistake("codes_swapped", (False, True), "the two codes are swapped", "The 1-D code knows one order: along the rows.",
                         "The pair is (1-D code, 2-D code)."),
            ValueMistake("both_see_the_seam", (True, True), "both codes are said to join 7 and 8", "The 2-D code knows that 8 starts a new row.",
                         "Read the second entry from the similarity of the 2-D table."),
            ValueMistake("neither", (False, False), "neither code is said to join 7 and 8", "In one long row, 8 follows 7.",
                         "Read the first entry from the similarity of the 1-D table."),
        ),
        proves="the 1-D code joins the seam, the 2-D code does not",
    ),
    "stem_tokens": ValueChecker(
        "stem_tokens", reference.stem_tokens,
        (
            ValueMistake("patch_tokens", 196, "the tokens of patch size 16 are given", "Three halvings are a factor of 8, not 16.", "Run the stem and look at the grid."),
            ValueMistake("with_class_token", 785, "a class token is counted", "The stem alone adds none.", "Count the places of the grid."),
            ValueMistake("one_side", 28, "one side of the grid is given", "The grid has two sides.", "Multiply down by across."),
            ValueMistake("divided_by_six", 37 * 37, "the strides are added, not multiplied", "Each convolution halves what it gets.", "Three halvings in a row divide by 8."),
        ),
        proves="three convolutions of stride 2 leave a grid eight times smaller on each side",
    ),
}  # fmt: skip
