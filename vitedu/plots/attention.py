"""Figures of notebook 02: scores, weights, heads, cost.

Role: draw what the notebook measured. Not here: the measuring, and attention itself; every function
takes numbers that are already there.

Every colour scale is fixed or stated at its colour bar: a map scaled to its own extremes shows a
pattern in any noise, as ``show_map_scales`` demonstrates.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vitedu.plots import ink
from vitedu.plots.parts import (
    colour_cells,
    draw_image,
    draw_lines,
    name_rows,
    uniform_bar,
    write,
    write_cells,
)
from vitedu.plots.style import WIDTH, figure, panel, styled, to_picture

BRIGHT = 3  # times an even share: a patch that gets so much attention has its full brightness


@styled
def show_temperatures(weights: Mapping[float, torch.Tensor], scores: torch.Tensor) -> Figure:
    """Draw the weights that one set of scores gives at several temperatures, one panel each.

    Args:
        weights: temperature -> weights (T,).
        scores: the scores (T,), written under the bars.
    """
    fig, axes = figure(1, len(weights), size=(WIDTH, 2.4), sharey=True)
    labels = [f"{score:g}" for score in scores.tolist()]
    for ax, (temperature, row) in zip(axes[0], weights.items(), strict=True):
        ax.axhline(1 / len(labels), color=ink.GREY, linestyle=":", zorder=0)
        bars = ax.bar(labels, row.tolist(), color=ink.BLUE)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # over the dotted line
        ax.bar_label(bars, fmt="%.2f", fontsize=8, padding=1, bbox=box)
        ax.set(title=f"temperature {temperature:g}", xlabel="score", ylim=(0, 1.1))
    axes[0, 0].set_ylabel("weight")
    words, place = "dotted: uniform", (0.98, 0.6)
    axes[0, -1].annotate(words, place, xycoords="axes fraction", color=ink.GREY, ha="right")
    return fig


@styled
def show_attention_steps(
    scores: torch.Tensor, weights: torch.Tensor, output: torch.Tensor
) -> Figure:
    """Draw scores, weights and output of one small example as heat maps with their numbers.

    Args:
        scores: (Tq, Tk), already scaled.
        weights: (Tq, Tk).
        output: (Tq, dv).
    """
    widths = [scores.shape[1], weights.shape[1], output.shape[1]]
    fig, axes = figure(1, 3, size=(WIDTH, 2.9), width_ratios=widths)
    reach = max(float(output.abs().max()), float(scores.abs().max()), 1.0)
    panels = [
        ("scores  q kᵀ / √d", scores, "key", ink.DIVERGING, -reach, reach),
        ("weights  softmax over keys", weights, "key", ink.SEQUENTIAL, 0.0, 1.0),
        ("output  weights · v", output, "column of v", ink.DIVERGING, -reach, reach),
    ]
    for ax, (title, table, xlabel, cmap, low, high) in zip(axes[0], panels, strict=True):
        values = table.numpy(force=True)
        image = ax.imshow(values, cmap=cmap, vmin=low, vmax=high)
        is_dark = image.to_rgba(values) @ (0.3, 0.6, 0.1, 0) < 0.5
        write_cells(ax, np.char.mod("%.2f", values), is_dark, fontsize=9)
        ax.set(title=title, xlabel=xlabel, ylabel="query")
        ax.set(xticks=range(table.shape[1]), yticks=range(table.shape[0]))
        fig.colorbar(image, ax=ax, orientation="horizontal", shrink=0.9)
    return fig


@styled
def show_score_maps(heads: Mapping[str, tuple[torch.Tensor, torch.Tensor]]) -> Figure:
    """Draw the scores and the weights of some heads as heat maps, one row a head.

    Scores have a scale for each head, symmetric about 0. All weights share one, relative to uniform
    and logarithmic: from a tenth of it to thirty times it.

    Args:
        heads: name -> scores (T, T) and weights (T, T); rows are queries, row 0 the class token.
    """
    fig, axes = figure(len(heads), 2, size=(WIDTH, 3.1 * len(heads)))
    for (left, right), (name, (scores, weights)) in zip(axes, heads.items(), strict=True):
        reach = float(scores.abs().max())
        image = left.imshow(scores.numpy(force=True), cmap=ink.DIVERGING, vmin=-reach, vmax=reach)
        fig.colorbar(image, ax=left, label="score")
        relative = (weights * weights.shape[-1]).numpy(force=True).clip(1e-9)
        image = right.imshow(relative, cmap=ink.SEQUENTIAL, norm=LogNorm(0.1, 30))
        uniform_bar(fig, image, ax=right)
        for ax, what in ((left, "scores"), (right, "weights")):
            ax.set(title=f"{what}, {name}", xlabel="key", ylabel="query")
    return fig


@styled
def show_saturation(
    results: Mapping[str, Mapping[int, tuple[float, float, Sequence[float]]]],
) -> Figure:
    """Draw how softmax saturates with the width of the keys, scaled and not.

    Args:
        results: name of the variant -> width d -> (standard deviation of the scores, mean largest
            weight, three quantiles of the norm of softmax's Jacobian: the median is a line, the
            outer two are the edges of a band).
    """
    titles = ("std of the scores", "mean largest weight", "Jacobian:\nmedian, 10 to 90 %")
    fig, axes = figure(1, 3, size=(WIDTH, 2.9))
    left, middle, right = axes[0]
    styles = (("o-", ink.RED), ("s--", ink.BLUE))
    for (name, by_width), (style, colour) in zip(results.items(), styles, strict=True):
        widths, (stds, tops, norms) = list(by_width), zip(*by_width.values(), strict=True)
        low, median, high = zip(*norms, strict=True)
        for ax, values in zip(axes[0], (stds, tops, median), strict=True):
            ax.plot(widths, values, style, color=colour, label=name)
        right.fill_between(widths, low, high, color=colour, alpha=0.2, linewidth=0)
    for ax, title in zip(axes[0], titles, strict=True):
        ax.set_xscale("log", base=2)
        ax.set(title=title, xlabel="width d of q and k", ylim=(0, None))
    middle.set_ylim(0, 1)
    left.legend(loc="upper left")
    return fig


@styled
def show_head_split(num_tokens: int, embed_dim: int, num_heads: int) -> Figure:
    """Draw which columns each head gets, and what a bare reshape would give it instead.

    Every cell carries the number of its token and is coloured by the head that owns its column.

    Args:
        num_tokens: T, small.
        embed_dim: D, small.
        num_heads: nh, a divisor of D.
    """
    T, D, nh = num_tokens, embed_dim, num_heads
    hd = D // nh
    token = np.repeat(np.arange(T), D).reshape(T, D)
    owner = np.tile(np.repeat(np.arange(nh), hd), T).reshape(T, D)
    fig, axes = figure(1, 3, size=(WIDTH, 3.4))
    both = np.stack((token, owner))  # (2, T, D)
    tables = {  # title -> for each head what its cells say, and who owns them
        f"x: ({T}, {D})": both[None],
        f"split_heads: ({nh}, {T}, {hd})": np.stack(np.split(both, nh, axis=2)),
        f"a bare reshape to ({nh}, {T}, {hd})": both.reshape(2, nh, T, hd).swapaxes(0, 1),
    }
    for ax, (title, heads) in zip(axes[0], tables.items(), strict=True):
        for index, (numbers, owners) in enumerate(heads):
            top = index * (T + 0.7)
            colour_cells(ax, numbers, owners, top, fontsize=9)
            if not title.startswith("x"):
                ax.text(-0.3, top + T / 2, f"head {index}", ha="right", va="center")
        ax.set(title=title, xlim=(-2.5, D), ylim=(nh * (T + 0.7), -0.5), aspect="equal")
        ax.axis("off")
    fig.supxlabel("number: the token a value belongs to; colour: the head that owns its column")
    return fig


@styled
def show_cost(
    num_tokens: Sequence[int],
    projections: Sequence[int],
    products: Sequence[int],
    marks: Mapping[str, int],
) -> Figure:
    """Draw the cost of an attention layer against the length of the sequence, both axes
    logarithmic.

    Args:
        num_tokens: lengths T.
        projections: multiply-accumulates of the four projections at each length.
        products: those of the two products in which tokens meet tokens.
        marks: label -> length, drawn as vertical lines.
    """
    fig, ax = panel(WIDTH * 0.75, 3.4)
    growth = "four projections: grow as T", "two T×T products: grow as T²"
    ax.plot(num_tokens, projections, "s--", color=ink.BLUE, label=growth[0], ms=4)
    ax.plot(num_tokens, products, "o-", color=ink.RED, label=growth[1], ms=4)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    for label, length in marks.items():
        ax.axvline(length, color=ink.GREY, linestyle=":")
        ax.text(length, 0.02, f" {label}", transform=ax.get_xaxis_transform(), fontsize=8)
    ax.set(xlabel="number of tokens T", ylabel="multiply-accumulates of one layer")
    ax.legend(loc="upper left", frameon=True, framealpha=1, edgecolor="none")  # over the lines
    return fig


@styled
def show_quadrant_images(
    images: torch.Tensor, labels: torch.Tensor, attention: torch.Tensor | None = None
) -> Figure:
    """Draw images of the quadrant task, and under each where the class token looks, if given.

    Args:
        images: (B, 1, H, W), about 0 on the background and 1 on the square.
        labels: (B,), the quadrants.
        attention: (B, gh, gw), weights of the class token over the patches.
    """
    rows = 1 if attention is None else 2
    fig, axes = figure(rows, len(images), size=(WIDTH, 1.6 if rows == 1 else 2.6), ticks=False)
    middle = [images.shape[-1] / 2 - 0.5]
    for ax, image, label in zip(axes[0], images, labels.tolist(), strict=True):
        ax.imshow(image[0].numpy(force=True), cmap="gray", vmin=-1, vmax=2)
        draw_lines(ax, middle, middle, color=ink.ORANGE)
        ax.set_title(f"label {label}")
    if attention is not None:
        for ax, weights in zip(axes[1], attention.numpy(force=True), strict=True):
            last = ax.imshow(weights, cmap=ink.SEQUENTIAL, vmin=0, vmax=1)
        axes[1, 0].set_ylabel("class token\nlooks at")
        fig.colorbar(last, ax=list(axes[1]), label="weight", fraction=0.02)
    return fig


@styled
def show_learning(
    steps: Sequence[int], accuracy: Mapping[str, Sequence[Sequence[float]]], chance: float
) -> Figure:
    """Draw test accuracy against training steps, a line for each seed, with the level of guessing.

    Args:
        steps: when the accuracy was measured.
        accuracy: name of the model -> accuracies in [0, 1], a row for each seed.
        chance: what guessing reaches.
    """
    fig, ax = panel(WIDTH * 0.7)
    looks = zip(("o-", "s--", "^:"), ink.CYCLE, strict=False)
    for (name, runs), (style, colour) in zip(accuracy.items(), looks, strict=False):
        for number, values in enumerate(runs):
            label = f"{name} (seeds: {len(runs)})" if number == 0 else None
            percent = np.multiply(values, 100)
            ax.plot(steps, percent, style, color=colour, label=label, ms=4, alpha=0.7)
    ax.axhline(100 * chance, color=ink.GREY, linestyle=":", label="guessing")
    ax.set(xlabel="training steps", ylabel="test accuracy (%)", ylim=(0, 103))
    ax.legend()
    return fig


@styled
def show_clock(milliseconds: Mapping[int, tuple[float, float]]) -> Figure:
    """Draw measured times against the length of the sequence, with a line of slope 2.

    Args:
        milliseconds: length T -> time of attention written out, time of torch's fused function.
    """
    fig, ax = panel(WIDTH * 0.6)
    lengths = list(milliseconds)
    ours, fused = zip(*milliseconds.values(), strict=True)
    ax.plot(lengths, ours, "o-", color=ink.BLUE, label="written out")
    ax.plot(lengths, fused, "s--", color=ink.ORANGE, label="torch's SDPA")
    square = [ours[-1] * (T / lengths[-1]) ** 2 for T in lengths]
    ax.plot(lengths, square, ":", color=ink.GREY, label="slope 2: quadratic")
    ax.set_xscale("log", base=2)
    ax.set(yscale="log", xlabel="number of tokens T", ylabel="milliseconds")
    ax.legend()
    return fig


@styled
def show_layer() -> Figure:
    """Draw the layer of multi-head attention as boxes, from its input to its output, with
    shapes."""
    stages = (
        ("input x", "(B, T, D)", "white"),
        ("Linear(D, 3D), cut into q, k, v", "3 × (B, T, D)", ink.SKY),
        ("split heads", "3 × (B, nh, T, hd)", ink.LIGHT),
        ("scores: q kᵀ / √hd", "(B, nh, T, T)", ink.LIGHT),
        ("softmax over the keys: weights", "(B, nh, T, T), returned too", ink.LIGHT),
        ("weights · v", "(B, nh, T, hd)", ink.LIGHT),
        ("merge heads", "(B, T, D)", ink.LIGHT),
        ("Linear(D, D): the heads are mixed", "(B, T, D)", ink.SKY),
    )
    fig, ax = panel(WIDTH * 0.75, 4.2)
    for k, (text, shape, colour) in enumerate(stages):
        y = len(stages) - k
        ax.add_patch(Rectangle((0, y - 0.3), 5, 0.6, facecolor=colour, edgecolor=ink.GREY))
        write(ax, 2.5, y, text)
        ax.text(5.3, y, shape, va="center", color="#444444")
        if k:
            ax.annotate("", (2.5, y + 0.3), (2.5, y + 0.7), arrowprops={"arrowstyle": "-|>"})
    ax.text(5.3, 0.35, "blue: has parameters", color="#444444", fontsize=8)
    ax.set(xlim=(-0.1, 8.6), ylim=(0.1, len(stages) + 0.5))
    ax.axis("off")
    return fig


@styled
def show_spotlight(images, looks: Mapping[str, torch.Tensor], *, uniform: float) -> Figure:
    """Draw photographs, and below each the same one lit where attention falls, a row a model.

    A patch has its full brightness from three times an even share upwards, and a third of it at an
    even share, whoever looks.

    Args:
        images: (n, C, H, W), uint8 or floats in [0, 1].
        looks: name of the row -> (n, gh, gw), weights on the patches.
        uniform: the weight that each of the T tokens would get from an even spread, 1/T.
    """
    rows, columns = 1 + len(looks), len(images)
    fig, axes = figure(rows, columns, size=(WIDTH, rows * WIDTH / (columns + 1.2)), ticks=False)
    for ax, image in zip(axes[0], images, strict=True):
        draw_image(ax, image)
    for row, weights in zip(axes[1:], looks.values(), strict=True):
        light = (weights.numpy(force=True) / (BRIGHT * uniform)).clip(0, 1)
        for ax, image, patches in zip(row, map(to_picture, images), light, strict=True):
            patch_size = len(image) // len(patches)
            ax.imshow(image * np.kron(patches, np.ones((patch_size, patch_size)))[..., None])
    name_rows(axes, ("photograph", *looks), size=9)
    scale = ScalarMappable(Normalize(0, BRIGHT), "gray")
    bar = fig.colorbar(scale, ax=axes.ravel().tolist(), label="weight / uniform", shrink=0.9)
    bar.set_ticks([0, 1, BRIGHT], labels=["0", "1", f"{BRIGHT}+"])
    return fig


@styled
def show_map_scales(maps: torch.Tensor) -> Figure:
    """Draw the same attention maps twice: each scaled to its own extremes, and all on one scale.

    Weights are shown relative to uniform: 1 is what every patch gets when nothing is preferred.

    Args:
        maps: (nh, gh, gw) weights of one query.
    """
    relative = (maps / maps.mean(dim=(-2, -1), keepdim=True)).numpy(force=True)
    fig, axes = figure(2, len(maps), size=(WIDTH, 4.2), ticks=False)
    for j, table in enumerate(relative):
        extremes = [float(table.min()), float(table.max())]
        for ax, ticks in zip(axes[:, j], (extremes, [0.0, 1.0, 2.0, 3.0]), strict=True):
            mappable = ax.imshow(table, cmap=ink.SEQUENTIAL, vmin=ticks[0], vmax=ticks[-1])
            form = "%.2f" if ticks is extremes else None
            fig.colorbar(mappable, ax=ax, shrink=0.8, ticks=ticks, format=form)
        axes[0, j].set_title(f"head {j}")
    name_rows(axes, ("scaled to its\nown extremes", "one scale,\n0 to 3"))
    fig.supxlabel("attention weight relative to uniform")
    return fig
