"""Figures of notebook 03: normalisation, GELU, the block, depth, and where the parameters are.

Role: every figure of the notebook, as functions from tensors and numbers to a Figure. Not here: any
measurement; the notebook measures and hands the numbers over.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.ticker import MaxNLocator

from vitedu.plots import ink
from vitedu.plots.parts import draw_box, draw_horizons, draw_image, verdict, write
from vitedu.plots.style import WIDTH, figure, panel, styled

LINES = ("-", "--", ":", "-.")  # with colours and markers, so that no curve needs its colour
PART_COLOURS = {  # one colour for one part, in every figure of the chapter
    "patch embedding": ink.SKY,
    "class token, positions": ink.PINK,
    "attention": ink.ORANGE,
    "T x T products": ink.RED,
    "MLP": ink.BLUE,
    "norms": ink.GREY,
    "head": ink.GREEN,
}


@styled
def show_layer_norm(before: torch.Tensor, after: torch.Tensor) -> Figure:
    """Draw tokens before and after normalisation, with the mean and spread of each.

    Args:
        before: (T, D), a row of the heat map for each token.
        after: (T, D), on a colour scale of its own.
    """
    fig, axes = figure(1, 2, size=(8.0, 2.6))
    for ax, tokens, title in zip(axes[0], (before, after), ("before", "after"), strict=True):
        values = tokens.detach().float().cpu().numpy()
        limit = float(np.abs(values).max()) or 1.0
        image = ax.imshow(values, cmap=ink.DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
        spread = values.std(axis=-1)
        mean = values.mean(axis=-1).round(2) + 0.0  # + 0.0: no "-0.00"
        labels = [f"{m:+.2f} ± {s:.2f}" for m, s in zip(mean, spread, strict=True)]
        ax.set(title=title, xlabel="feature", xticks=[])
        ax.set_yticks(range(len(values)), labels, fontsize=8, family="monospace")
        fig.colorbar(image, ax=ax, label=f"value, −{limit:.1f} to {limit:.1f}")
    axes[0, 0].set_ylabel("token: mean ± std")
    return fig


@styled
def show_gelu(gelu: Callable[[torch.Tensor], torch.Tensor]) -> Figure:
    """Draw a GELU beside ReLU, its slope, and how far torch's tanh form is from it.

    Args:
        gelu: maps a tensor to a tensor of the same shape.
    """
    points = torch.linspace(-5, 5, 2001, dtype=torch.float64, requires_grad=True)
    values = gelu(points)
    (slopes_there,) = torch.autograd.grad(values.sum(), points)
    tanh_form = F.gelu(points.detach(), approximate="tanh")
    difference = ((tanh_form - values.detach()) * 1e4).numpy()
    x, y, slope = (tensor.detach().numpy() for tensor in (points, values, slopes_there))
    low = int(y.argmin())

    fig, axes = figure(1, 3, size=(9.0, 2.8))
    curve, slopes, gap = axes[0]
    curve.plot(x, x.clip(0), "--", color=ink.GREY, label="ReLU")
    curve.plot(x, y, color=ink.BLUE, label="GELU")
    curve.plot(x[low], y[low], "o", color=ink.RED)
    words = f"minimum {y[low]:.3f}\nat x = {x[low]:.2f}".replace("-", "−")
    look = {"arrowprops": {"arrowstyle": "-", "color": ink.GREY}, "ha": "center", "fontsize": 8}
    curve.annotate(words, (x[low], y[low]), (-2.3, 1.0), **look)
    curve.set(title="value", xlabel="x", ylabel="f(x)", xlim=(-4, 3), ylim=(-0.5, 3))
    curve.legend(loc="upper left")
    slopes.plot(x, x > 0, "--", color=ink.GREY)
    slopes.plot(x, slope, color=ink.BLUE)
    slopes.set(title="slope", xlabel="x", ylabel="f'(x)", xlim=(-4, 4), ylim=(-0.3, 1.3))
    gap.plot(x, difference, color=ink.RED)
    gap.axhline(0, color=ink.LIGHT, zorder=0)
    gap.set(title="tanh form − exact", xlabel="x", ylabel="difference, × 10⁻⁴", xlim=(-5, 5))
    return fig


@styled
def draw_block() -> Figure:
    """Draw a pre-norm and a post-norm block as a main road with two side roads each.

    On the main road stand two additions, and in the post-norm block two normalisations too.
    """
    fig, axes = figure(2, 1, size=(8.0, 3.0))
    above, below = axes[:, 0]
    _draw_road(above, norm_first=True)
    _draw_road(below, norm_first=False)
    above.set_title("pre-norm (ViT): norms on the side roads, the main road is free", loc="left")
    below.set_title("post-norm (2017): norms across the main road", loc="left")
    return fig


def _draw_road(ax, *, norm_first: bool) -> None:
    """Draw one block: main road at y = 0, side roads at y = 1."""

    def box(x, y, name, colour):
        look = {"edgecolor": colour, "linewidth": 2, "fontsize": 9, "family": "monospace"}
        draw_box(ax, x, y, (1.5, 0.52), name, corners="pad=0.06", **look)

    ax.plot([0, 13], [0, 0], color=ink.BLACK, linewidth=5, solid_capstyle="butt", zorder=1)
    ax.text(-0.1, 0, "x\n(B, T, D)", ha="right", va="center", fontsize=9)
    ax.text(13.2, 0, "(B, T, D)", ha="left", va="center", fontsize=9)
    roads = (0.7, "norm1", "attn", ink.ORANGE), (7.0, "norm2", "mlp", ink.BLUE)
    for start, norm, layer, colour in roads:
        plus = start + (5.2 if norm_first else 3.4)
        ax.plot([start, start, plus, plus], [0, 1, 1, 0.28], color=colour, linewidth=2, zorder=1)
        ends = (plus, 0.6), (plus, 0.2)
        ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=14, color=colour))
        if norm_first:
            box(start + 0.28 * (plus - start), 1, norm, ink.GREY)
            box(start + 0.72 * (plus - start), 1, layer, colour)
        else:
            box(start + 0.5 * (plus - start), 1, layer, colour)
            box(plus + 1.4, 0, norm, ink.GREY)
        ax.add_patch(Circle((plus, 0), 0.24, facecolor="white", edgecolor=ink.BLACK, zorder=3))
        write(ax, plus, 0, "+", fontsize=12, zorder=4)
    ax.set(xlim=(-1.6, 14.8), ylim=(-0.45, 1.45), aspect="equal")
    ax.axis("off")


@styled
def show_through_depth(
    series: Mapping[str, Sequence[float]],
    ylabel: str,
    *,
    first: int = 0,
    ylim: tuple[float, float] | None = None,
) -> Figure:
    """Draw one curve a model, a value for each depth.

    Args:
        series: label -> values, one for each block.
        ylabel: what was measured, with its unit.
        first: the depth of the first value: 0 when the input is counted, 1 when only blocks are.
        ylim: limits of the y axis.
    """
    fig, ax = panel(6.5)
    _draw_curves(ax, series, first)
    ax.set(xlabel="block (0: the input)" if first == 0 else "block", ylabel=ylabel, ylim=ylim)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def _draw_curves(ax, series: Mapping[str, Sequence[float]], first: int) -> None:
    """Draw one curve a model by depth, each with a colour, a marker and a line of its own."""
    for number, (label, values) in enumerate(series.items()):
        depth = np.arange(first, first + len(values))
        look = {"color": ink.pick(number), "marker": "osD^vP*"[number % 7], "markersize": 4}
        ax.plot(depth, values, LINES[number % 4], label=label, **look)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


@styled
def show_depth(
    cosines: Mapping[str, Sequence[float]], lengths: Mapping[str, Sequence[float]]
) -> Figure:
    """Draw what blocks make of tokens: how alike those of one image are, and how long.

    Args:
        cosines: label -> mean cosine between the tokens of an image, at the input and after each
            block.
        lengths: the same for their mean length, which is drawn on a logarithmic axis.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 3.4))
    for ax, series in zip(axes[0], (cosines, lengths), strict=True):
        _draw_curves(ax, series, first=0)
        ax.set(xlabel="block (0: the input)")
    axes[0, 0].set(ylabel="cosine between tokens of an image", ylim=(-0.05, 1.05))
    axes[0, 1].set(ylabel="mean length of a token", yscale="log")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


@styled
def show_arms(
    accuracies: Mapping[str, Sequence[float]],
    live: tuple[str, float],
    horizons: Mapping[str, float],
) -> Figure:
    """Draw what models reach that each lack one part: a dot a seed, and lines to compare with.

    Args:
        accuracies: arm -> accuracy of each seed, in [0, 1]; none where nothing is measured yet.
        live: the arm that was trained just now, one of them, and its accuracy.
        horizons: name -> accuracy of others.
    """
    arms = list(accuracies)
    fig, ax = panel(WIDTH, 1.6 + 0.36 * len(arms))
    for y, values in enumerate(accuracies.values()):
        ax.plot([100 * v for v in values], [y] * len(values), "o", color=ink.BLUE, markersize=5)
        if values:
            mean = 100 * sum(values) / len(values)
            ax.text(mean, y + 0.2, f"{mean:.1f}", ha="center", va="top", fontsize=8)
    arm, accuracy = live
    ax.plot(100 * accuracy, arms.index(arm), "D", color=ink.RED, label=f"your run: {accuracy:.1%}")
    draw_horizons(ax, horizons)
    ax.set_yticks(range(len(arms)), arms)
    ax.set(xlabel="accuracy (%)", xlim=(0, 100), ylim=(len(arms) - 0.4, -0.6))
    if any(accuracies.values()):
        ax.plot([], [], "o", color=ink.BLUE, markersize=5, label="measured before: seeds, mean")
    fig.legend(loc="outside lower center", ncols=2)
    return fig


@styled
def show_parameter_map(parts: Mapping[str, Mapping[str, int]], *, title: str = "") -> Figure:
    """Draw a model as a map whose areas are its parameter counts.

    Args:
        parts: column -> {part: count}, in reading order. A column is as wide as its sum, a part as
            high as its share. Colours follow ``PART_COLOURS`` by the last word of
            ``"qkv: attention"``-like names.
        title: above the map.
    """
    fig, ax = panel(9.0, 3.4)
    total = sum(sum(column.values()) for column in parts.values())
    left = 0.0
    for name, column in parts.items():
        width = sum(column.values()) / total
        bottom = 1.0
        for label, count in column.items():
            text, _, part = label.rpartition(": ")
            height = count / sum(column.values())
            bottom -= height
            cell = Rectangle((left, bottom), width, height, facecolor=PART_COLOURS[part])
            ax.add_patch(cell).set(edgecolor="white", linewidth=0.6)
            if text and width > 0.04 and height > 0.08:
                middle = (left + width / 2, bottom + height / 2)
                write(ax, *middle, text, fontsize=8, color=_text_colour(PART_COLOURS[part]))
        if width > 0.03:
            ax.text(left + width / 2, -0.03, name, ha="center", va="top", fontsize=8)
        left += width
    names = {label.rpartition(": ")[2] for column in parts.values() for label in column}
    colours = {part: colour for part, colour in PART_COLOURS.items() if part in names}
    handles = [Rectangle((0, 0), 1, 1, facecolor=c, label=part) for part, c in colours.items()]
    fig.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    ax.set(xlim=(0, 1), ylim=(-0.12, 1), title=title)
    ax.axis("off")
    return fig


def _text_colour(colour: str) -> str:
    """Give the colour of letters on the colour of a part."""
    return "white" if colour in (ink.BLUE, ink.GREY, ink.GREEN) else ink.BLACK


def parameter_columns(model) -> dict[str, dict[str, int]]:
    """Count a ``VisionTransformer``'s parameters by column and part, for ``show_parameter_map``."""

    def size(module) -> int:
        return sum(p.numel() for p in module.parameters())

    tokens = model.pos_embed.numel() + model.cls_token.numel()
    patches = {"conv: patch embedding": size(model.patch_embed)}
    columns = {"patches": {**patches, "positions: class token, positions": tokens}}
    for i, block in enumerate(model.blocks):
        columns[f"block {i}"] = {
            "norm1: norms": size(block.norm1),
            "qkv: attention": size(block.attn.qkv),
            "proj: attention": size(block.attn.proj),
            "norm2: norms": size(block.norm2),
            "fc1: MLP": size(block.mlp.fc1),
            "fc2: MLP": size(block.mlp.fc2),
        }
    columns["head"] = {"norm: norms": size(model.norm), "head: head": size(model.head)}
    return columns


@styled
def show_shares(rows: Mapping[str, Mapping[str, float]], *, xlabel: str) -> Figure:
    """Draw one bar a row, cut into the shares of its parts.

    Args:
        rows: label -> {part: amount}, parts named as in ``PART_COLOURS``. Shares of 4 % and more
            are written into the bar.
        xlabel: what the shares are of.
    """
    fig, ax = panel(8.0, 0.9 + 0.42 * len(rows))
    for row, amounts in enumerate(rows.values()):
        total, left = sum(amounts.values()), 0.0
        for part, amount in amounts.items():
            share = 100 * amount / total
            colour = PART_COLOURS[part]
            ax.barh(row, share, left=left, color=colour, edgecolor="white", label=part)
            if share >= 4:
                write(ax, left + share / 2, row, f"{share:.0f}", color=_text_colour(colour))
            left += share
    ax.set_yticks(range(len(rows)), list(rows))
    ax.invert_yaxis()
    ax.set(xlabel=xlabel, xlim=(0, 100))
    bars = {bar.get_label(): bar for bar in ax.containers}  # one of each part
    handles = [bars[part] for part in PART_COLOURS if part in bars]
    fig.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8)
    return fig


@styled
def show_overfit(
    losses: Mapping[str, Sequence[float]],
    floor: float,
    images: torch.Tensor,
    verdicts: Sequence[tuple[str, bool]],
) -> Figure:
    """Draw the losses of models that learn a handful of images by heart, and the images.

    Args:
        losses: label -> loss of every step.
        floor: the lowest loss of any model that cannot see, drawn as a line.
        images: (B, C, H, W), floats in [0, 1] or uint8.
        verdicts: for each image the predicted class name and whether it is right.
    """
    fig, axes = figure(1, 2, size=(9.0, 3.8), width_ratios=(1.0, 1.1))
    curves, place = axes[0]
    for number, (label, values) in enumerate(losses.items()):
        curves.plot(values, LINES[number % 4], color=ink.pick(number), label=label)
    curves.axhline(floor, color=ink.GREY, linewidth=1, label=f"floor without seeing: {floor:.2f}")
    curves.set(xlabel="step", ylabel="cross-entropy (nats)", ylim=(0, None))
    fig.legend(loc="outside lower left", ncols=3, fontsize=8)

    place.axis("off")
    columns = max(1, round(len(images) ** 0.5))
    rows = -(-len(images) // columns)
    for i, (image, (name, right)) in enumerate(zip(images, verdicts, strict=True)):
        row, column = divmod(i, columns)
        size = (0.9 / columns, 0.75 / rows)
        ax = place.inset_axes((column / columns, 1 - (row + 1) / rows, *size))
        draw_image(ax, image)
        sign, colour = verdict(right)
        ax.set_title(f"{sign} {name}", fontsize=7, pad=2, color=colour)
    return fig


@styled
def show_named(
    pictures: Sequence[torch.Tensor], probabilities: torch.Tensor, class_names: Sequence[str]
) -> Figure:
    """Draw pictures, and beside each the classes that a model finds most probable.

    Three classes at most, with their probabilities.

    Args:
        pictures: n tensors (C, H, W), uint8 or floats in [0, 1], of any sizes.
        probabilities: (n, K), rows that sum to 1.
        class_names: K names.
    """
    n, across = len(pictures), min(len(pictures), 2)
    rows = -(-n // across)
    ratios = (0.55, 1.0) * across
    fig, axes = figure(rows, 2 * across, size=(9.0, 1.7 * rows), width_ratios=ratios)
    for ax in axes.flat[2 * n :]:
        ax.axis("off")
    pairs = axes.reshape(-1, 2)[:n]
    for (place, bars), picture, belief in zip(pairs, pictures, probabilities, strict=True):
        draw_image(place, picture)
        values, classes = belief.detach().cpu().topk(min(3, len(class_names)))
        shares = (100 * values).tolist()
        bars.barh(range(len(shares)), shares, color=ink.SKY, height=0.6)
        for row, (share, k) in enumerate(zip(shares, classes.tolist(), strict=True)):
            bars.text(2, row, f"{class_names[k]}, {share:.0f}%", va="center", fontsize=9)
        bars.set(xlim=(0, 100), ylim=(len(shares) - 0.4, -0.6), xlabel="probability (%)", yticks=[])
    return fig
