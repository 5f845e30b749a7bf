"""Figures of notebook 08: windows, masks, cost, and what fewer tokens cost in accuracy.

Role: draw what the notebook measured. Not here: the measuring; every function takes numbers that
are already there.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from vitedu.plots import ink
from vitedu.plots.parts import draw_lines, draw_map, frame, write_cells
from vitedu.plots.style import WIDTH, figure, panel, styled, to_picture

TWO = ListedColormap([ink.LIGHT, ink.BLUE])  # forbidden, allowed
IDEAS = "*os^DvX<P>d1x|_p"  # marks that stay apart when they are hollow


@styled
def show_shift(numbers: torch.Tensor, rolled: torch.Tensor, window_size: int, shift: int) -> Figure:
    """Draw a grid of numbered tokens with its windows, before and after a roll.

    Args:
        numbers: (gh, gw), the number of each token.
        rolled: (gh, gw), the same after the roll.
        window_size: w, in tokens.
        shift: by how many tokens; tokens that came round the edge are coloured.
    """
    gh, gw = numbers.shape
    fig, axes = figure(1, 2, size=(WIDTH, 3.9))
    came = (torch.arange(gh) >= gh - shift)[:, None] * 2 + (torch.arange(gw) >= gw - shift)
    colours = ListedColormap(["white", "#FFE2A8", "#BFE3F7", "#BFE9D9"])
    panels = (
        ("the grid, cut into windows", numbers, torch.zeros(gh, gw)),
        (f"after a roll by (−{shift}, −{shift})", rolled, came),
    )
    for ax, (title, table, regions) in zip(axes[0], panels, strict=True):
        draw_map(ax, regions, title, cmap=colours, vmin=0, vmax=3)
        write_cells(ax, table.numpy(), regions.numpy() < 0, fontsize=8)
        for i in range(0, gh, window_size):
            for j in range(0, gw, window_size):
                frame(ax, j - 0.5, i - 0.5, window_size, edgecolor=ink.BLACK, linewidth=1.8)
    fig.supxlabel("frames: windows; a colour: one region of the image", fontsize=9, color=ink.GREY)
    return fig


@styled
def show_masks(masks: torch.Tensor, names: Sequence[str]) -> Figure:
    """Draw masks side by side, dark where attention is allowed.

    Args:
        masks: (n, T, T) boolean.
        names: of each.
    """
    fig, axes = figure(1, len(masks), size=(WIDTH, 2.6))
    for ax, mask, name in zip(axes[0], masks, names, strict=True):
        ax.imshow(mask, cmap=TWO, vmin=0, vmax=1)
        ax.set(title=f"{name}\n{mask.float().mean():.0%} allowed", xlabel="key")
        ax.set(xticks=[0, len(mask) - 1], yticks=[0, len(mask) - 1])
    axes[0, 0].set_ylabel("query")
    return fig


@styled
def show_reach(
    maps: Mapping[str, tuple[tuple[int, int], torch.Tensor]], window_size: int
) -> Figure:
    """Draw on which tokens of a grid one token depends, one panel a case.

    Args:
        maps: name -> (row, column) of the token that asks, and (gh, gw) boolean.
        window_size: w; thin lines show the windows without a shift.
    """
    fig, axes = figure(1, len(maps), size=(WIDTH, 2.7))
    for ax, (name, ((row, column), reached)) in zip(axes[0], maps.items(), strict=True):
        title = f"{name}\n{int(reached.sum())} tokens"
        draw_map(ax, reached, title, cmap=TWO, vmin=0, vmax=1)
        ax.plot(column, row, "X", color=ink.ORANGE, markersize=9, markeredgecolor=ink.BLACK)
        edges = [edge - 0.5 for edge in range(window_size, len(reached), window_size)]
        draw_lines(ax, edges, edges, color=ink.GREY, linewidth=0.6)
    words = "cross: the token that asks; dark: its gradient is not zero"
    fig.supxlabel(words, fontsize=9, color=ink.GREY)
    return fig


@styled
def show_growth(
    milliseconds: Mapping[str, Mapping[int, float]], errors: Mapping[str, Mapping[int, float]]
) -> Figure:
    """Draw time and error of several kinds of attention against the number of tokens.

    Args:
        milliseconds: kind -> number of tokens -> median time.
        errors: kind -> number of tokens -> relative error against softmax attention.
    """
    fig, axes = figure(1, 2, size=(WIDTH, 3.6))
    looks = dict(zip(milliseconds, zip("osD^v", ink.CYCLE, strict=False), strict=False))
    titles = "milliseconds, median", "error relative to softmax attention"
    for ax, lines, label in zip(axes[0], (milliseconds, errors), titles, strict=True):
        for name, points in lines.items():
            mark, colour = looks[name]
            ax.plot(*zip(*points.items(), strict=True), mark + "-", color=colour, label=name, ms=4)
        ax.set_xscale("log", base=2)
        ax.set(xlabel="number of tokens T", ylabel=label)
    axes[0, 0].set_yscale("log")
    axes[0, 1].axhline(1, color=ink.GREY, linestyle=":")
    most = max(error for points in errors.values() for error in points.values())
    axes[0, 1].set_ylim(0, max(1.3, 1.15 * most))
    axes[0, 1].text(64, 0.98, "1: as large as the output", fontsize=8, color=ink.GREY, va="top")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return fig


@styled
def show_tokens(photograph, panels: Mapping[str, torch.Tensor]) -> Figure:
    """Draw which patches of a photograph still have a token, and which of them share one.

    Args:
        photograph: (3, H, W), uint8; H and W are multiples of gh and gw.
        panels: title -> (gh, gw) whole numbers: equal where patches share a token, -1 where a patch
            has none. Patches that share one have their mean colour; those without are grey.
    """
    fig, axes = figure(1, len(panels), size=(WIDTH, WIDTH / len(panels) + 0.4))
    for ax, (title, owners) in zip(axes[0], panels.items(), strict=True):
        picture = torch.from_numpy(to_picture(photograph).copy())  # (H, W, 3)
        side = picture.shape[0] // owners.shape[0], picture.shape[1] // owners.shape[1]
        large = owners.repeat_interleave(side[0], 0).repeat_interleave(side[1], 1)  # (H, W)
        for owner, patches in zip(*owners.unique(return_counts=True), strict=True):
            here = large == owner
            if owner < 0:
                picture[here] = 0.85
            elif patches > 1:
                picture[here] = picture[here].mean(dim=0)
        rows, columns = torch.zeros_like(large).bool(), torch.zeros_like(large).bool()
        rows[1:] = large[1:] != large[:-1]
        columns[:, 1:] = large[:, 1:] != large[:, :-1]
        picture[rows | columns] = 1.0
        draw_map(ax, picture.numpy(), title)
    return fig


@styled
def show_memory(parts: Mapping[str, float], peak: float) -> Figure:
    """Draw what lies in memory in a training step as one bar, with the measured peak beside it.

    Args:
        parts: name -> megabytes, from the sum.
        peak: megabytes, as measured.
    """
    fig, ax = panel(WIDTH, 1.9)
    left = 0.0
    for (name, size), colour in zip(parts.items(), ink.CYCLE, strict=False):
        ax.barh("the sum", size, left=left, color=colour, label=f"{name}: {size:.2f}")
        left += size
    ax.barh("measured peak", peak, color=ink.GREY, label=f"measured: {peak:.2f}")
    ax.invert_yaxis()
    ax.set_xlabel("megabytes (10⁶ bytes)")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    return fig


@styled
def show_trade(points: Mapping[str, tuple[float, Sequence[float]]]) -> Figure:
    """Draw accuracy against time, a mark of its own for each idea; marks are hollow, so that they
    may overlap.

    The mark says which idea it is, and the colour only helps: there are fewer colours than marks.

    Args:
        points: name -> (milliseconds, accuracies of all seeds); the mark is their mean, the line
            their range.

    Raises:
        ValueError: more ideas than there are marks.
    """
    if len(points) > len(IDEAS):
        raise ValueError(f"{len(points)} ideas need as many marks, and IDEAS has {len(IDEAS)}.")
    fig, ax = panel(WIDTH, 2.2 + 0.2 * len(points))
    base = next(iter(points.values()))
    ax.axvline(base[0], color=ink.LIGHT, zorder=0)
    ax.axhline(fmean(base[1]), color=ink.LIGHT, zorder=0)
    look = {"fillstyle": "none", "markersize": 10, "markeredgewidth": 2}
    for i, (name, (milliseconds, accuracies)) in enumerate(points.items()):
        colour = ink.CYCLE[i % (len(ink.CYCLE) - 1)]  # no yellow on white
        label = f"{name}, {len(accuracies)} seeds" if len(accuracies) > 1 else name
        ax.plot([milliseconds] * 2, [min(accuracies), max(accuracies)], color=colour, linewidth=1)
        ax.plot(milliseconds, fmean(accuracies), IDEAS[i], color=colour, label=label, **look)
    ax.set(xlabel="milliseconds, median (shorter is left)", ylabel="test accuracy (%)")
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9, handlelength=0.8)
    return fig


@styled
def show_bias(tables: Mapping[str, torch.Tensor]) -> Figure:
    """Draw the number that attention adds to the score of each offset, one panel a head.

    Args:
        tables: title -> (2*gh-1, 2*gw-1), the offset 0 in the middle. All share one scale.
    """
    fig, axes = figure(1, len(tables), size=(WIDTH, 2.4))
    reach = max(table.abs().max().item() for table in tables.values()) or 1.0
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        down, across = (side // 2 for side in table.shape)
        where = (-across - 0.5, across + 0.5, down + 0.5, -down - 0.5)
        mappable = ax.imshow(table, cmap=ink.DIVERGING, vmin=-reach, vmax=reach, extent=where)
        ax.set(title=title, xticks=[-across, 0, across], yticks=[-down, 0, down])
    axes[0, 0].set_ylabel("rows from key to query")
    fig.supxlabel("columns from key to query", fontsize=9, color=ink.GREY)
    fig.colorbar(mappable, ax=axes, shrink=0.8).set_label("added to the score")
    return fig
