"""The explorers of the notebooks: what each draws, and what it says of the place that is clicked.

Role: arrays in, an ``Explorer`` out; a figure that moves, and a sentence for each of its places.
Not here: clicking, sliders and pages (``vitedu.plots.explorer``), and any measuring.

Legend: an image is (C, H, H), uint8 or floats in [0, 1]; a grid of patches has grid_size (gh, gw),
N = gh*gw of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.transforms import offset_copy

from vitedu.plots import ink
from vitedu.plots.explorer import HEIGHT, PICTURE, Explorer, ExplorerFigure
from vitedu.plots.parts import check_square, draw_image, draw_map, uniform_bar, write_cells
from vitedu.plots.patches import cut, draw_grid
from vitedu.plots.style import WIDTH, to_picture

BOTTOM, TOP = PICTURE[1], PICTURE[1] + PICTURE[3]  # of the picture that is clicked
SHADES = (ink.BLUE, ink.SKY, "#BFE3F7", "white")  # reached after one block, two, three, and not yet


def position(k: int, columns: int) -> str:
    """Say where cell k of a grid lies."""
    return f"row {k // columns}, column {k % columns}"


def table_to_click(fig: ExplorerFigure, values, words, title: str, high: float) -> None:
    """Draw a table where it is clicked, its colours from 0 to ``high``, and words in its cells."""
    fig.picture.pcolormesh(values, cmap=ink.SEQUENTIAL, vmin=0, vmax=high, edgecolors="white")
    fig.picture.invert_yaxis()
    fig.picture.set_title(title)
    write_cells(fig.picture, words, values <= 0.6 * high, corner=0, fontsize=7.5)


def explore_patches(image, patch_sizes: Sequence[int] = (56, 32, 16)) -> Explorer:
    """Show an image, its patches, and the row of the sequence that the clicked patch becomes.

    Args:
        image: (C, H, H); H divisible by every size.
        patch_sizes: the sizes to choose from, in pixels.
    """
    check_square(image)
    image = torch.as_tensor(image)
    C, H, W = image.shape

    def draw(fig, P):
        tiles = cut(image, P).flatten(0, 1)  # (N, C, P, P)
        sequence, N = tiles.flatten(1).numpy(), len(tiles)  # (N, C*P*P)
        draw_grid(fig.picture, image, P, f"{N} patches of {P} px")
        places = (0.42, 0.5, 0.16, 0.3556), (0.66, 0.5, 0.32, 0.3556), (0.475, 0.16, 0.505, 0.2)
        close, matrix, values = map(fig.add_axes, places)
        matrix.imshow(sequence, cmap="gray", aspect="auto", interpolation="antialiased")
        matrix.set(title=f"the sequence: {N} rows", ylabel="row", xticks=[])
        values.set(xlim=(0, C * P * P), ylim=(sequence.min(), sequence.max()), ylabel="value")
        values.set_title(f"its row: {C * P * P} numbers")
        values.set_xlabel("place in the row: red, green, blue" if C == 3 else "place in the row")
        fig.follow(draw_image(close, tiles[0], "one patch"), data=list(map(to_picture, tiles)))
        heights = [[k, k] for k in range(N)]
        fig.follow(matrix.axhline(0, color=ink.ORANGE, linewidth=2), ydata=heights)
        (line,) = values.plot(sequence[0], color=ink.BLUE, linewidth=0.8)
        fig.follow(line, ydata=sequence)

    def describe(P, k):
        row = f"row {k} of the sequence: {C * P * P} numbers"
        return f"Patch {k} of {(H // P) * (W // P)} ({position(k, W // P)}) is {row}."

    sizes = {P: (H // P, W // P) for P in patch_sizes}
    return Explorer(draw, describe, patch_sizes, "patch size (px)", sizes.get, patch_sizes[-1])


def draw_attention_from(
    fig: ExplorerFigure, image, weights, grid_size: tuple[int, int], titles: Sequence[str]
) -> None:
    """Draw an image and the weights that one of its places gives to all places.

    The colour scale is the same for every place and table: weights relative to uniform,
    logarithmic, from a tenth of it to thirty times it.

    Args:
        weights: (N, N), row i is what place i attends to.
        titles: of the image, of the map, and of what the map shows.
    """
    relative = (weights * weights.shape[-1]).unflatten(-1, grid_size).numpy(force=True)
    draw_image(fig.picture, image, titles[0])
    ax = fig.add_axes((0.47, *PICTURE[1:]))
    look = {"cmap": ink.SEQUENTIAL, "norm": LogNorm(0.1, 30)}
    attention_map = draw_map(ax, np.ones(grid_size), titles[1], **look)
    place = fig.add_axes((0.87, PICTURE[1], 0.02, PICTURE[3]))
    uniform_bar(fig, attention_map, f"{titles[2]} / uniform", cax=place)
    fig.follow(attention_map, data=relative.clip(1e-9))
    fig.frame_in(ax, grid_size)


def explore_attention(
    image, weights_at: Callable, temperatures: Sequence[float], grid_size: tuple[int, int]
) -> Explorer:
    """Show an image, and where the clicked patch looks at the chosen temperature.

    Args:
        weights_at: temperature -> weights (N, N), row i is what patch i attends to.
        temperatures: the values to choose from.
    """
    check_square(image)
    tables = {temperature: weights_at(temperature) for temperature in temperatures}
    titles = "click a query patch", "where it looks", "weight"

    def draw(fig, temperature):
        draw_attention_from(fig, image, tables[temperature], grid_size, titles)

    def describe(temperature, k):
        row = tables[temperature][k]
        most = int(row.argmax())
        return (
            f"Temperature {temperature:g}: patch {k} gives its largest weight, {row[most]:.3f}, to "
            f"patch {most}, and {row[k]:.3f} to itself. Uniform would be {1 / len(row):.3f}."
        )

    middle = temperatures[len(temperatures) // 2]
    return Explorer(draw, describe, temperatures, "temperature", grid_size, middle)


def explore_reach(image, tables: dict[str, Any], grid_size: tuple[int, int]) -> Explorer:
    """Show an image, and how strongly the clicked place of a network depends on every place.

    Args:
        tables: network -> (N, N), row i holds the shares of all places in what moves place i.
    """
    check_square(image)
    titles = "click a place", "what it depends on", "share"

    def draw(fig, name):
        draw_attention_from(fig, image, tables[name], grid_size, titles)

    def describe(name, k):
        row = tables[name][k]
        reached = f"{int((row > 0).sum())} of {len(row)} places"
        return f"{name}: place {k} depends on {reached}; its own has a share of {row[k]:.0%}."

    return Explorer(draw, describe, list(tables), "network", grid_size, cell_name="place")


def explore_inside(
    images,
    weights: Mapping[str, np.ndarray],
    answers: Mapping[str, Sequence],
    grid_size: tuple[int, int],
) -> Explorer:
    """Show for the clicked patch where every head of every block looks, and what is answered there.

    Args:
        images: n images.
        weights: name of the model -> (n, L, nh, T, T); the last N tokens are patches.
        answers: name of the model -> for each picture, block and patch the answer in words.
    """
    check_square(images[0])
    gh, gw = grid_size
    look, first = {"cmap": ink.SEQUENTIAL, "norm": LogNorm(0.1, 10)}, next(iter(answers))
    left, right, gap = 0.405, 0.925, 0.02
    width = (right - left - gap * (len(weights) - 1)) / len(weights)  # of a model
    lines = max(1, round(0.4 * gh))  # of paper below each block, as high as cells

    def draw(fig, i):
        draw_image(fig.picture, images[i], "click a patch")
        for number, (name, tables) in enumerate(weights.items()):
            L, nh, T, _ = tables[i].shape
            # all maps of a model are one picture, because one is drawn faster than many
            maps = np.full((gh * gw, L, gh + lines, nh, gw + 1), np.nan)
            patches = np.maximum(np.asarray(tables[i])[..., -gh * gw :, -gh * gw :] * T, 1e-9)
            patches = patches.reshape(L, nh, gh * gw, gh, gw)
            maps[:, :, :gh, :, :gw] = patches.transpose(2, 0, 3, 1, 4)
            maps = maps.reshape(gh * gw, L * (gh + lines), -1)[..., :-1]
            ax = fig.add_axes((left + number * (width + gap), BOTTOM, width, TOP - BOTTOM))
            picture = draw_map(ax, maps[0], name, **look)
            ax.set_anchor("NW")
            fig.follow(picture, data=maps)
            for layer in range(L):
                place = -0.5, (layer + 1) * (gh + lines) - lines / 2 - 0.5
                ax.text(*place, f"block {layer}:", fontsize=7, va="center")
                behind = offset_copy(ax.transData, fig, 32, units="points")
                said = ax.text(*place, "", fontsize=7, va="center", transform=behind)
                fig.follow(said, text=answers[name][i][layer])
        place = fig.add_axes((0.94, BOTTOM, 0.012, TOP - BOTTOM))
        uniform_bar(fig, picture, "", cax=place)
        place.tick_params(labelsize=7, pad=1)
        place.set_title("× even", fontsize=7)

    def describe(i, k):
        answer = f"the {first} model answers {answers[first][i][-1][k]} after its last block"
        return f"Picture {i}, patch {k} ({position(k, gw)}): read at this patch, {answer}."

    return Explorer(draw, describe, range(len(images)), "picture", grid_size)


def explore_blocks(tables: Mapping[str, Any], grid_size: tuple[int, int]) -> Explorer:
    """Show after how many blocks the clicked token of a grid sees every other one.

    Args:
        tables: kind of attention -> (3, N, N) boolean; entry (n, i, j) says that token i depends on
            token j after n+1 blocks.
    """
    colours, names = ListedColormap(list(SHADES)), ("one block", "two blocks", "three blocks")

    def draw(fig, kind):
        is_seen, N = tables[kind], tables[kind].shape[-1]
        counts = is_seen.sum(dim=-1).tolist()  # 3 lists of N
        after = (3 - is_seen.sum(dim=0)).unflatten(-1, grid_size).numpy()  # (N, gh, gw), 0: one
        left = fig.picture
        right = fig.add_axes((0.56, PICTURE[1] + 0.12, 0.42, PICTURE[3] - 0.12))
        edges = {"edgecolors": ink.GREY, "linewidth": 0.4}
        cells = left.pcolormesh(after[0], cmap=colours, vmin=0, vmax=3, **edges)
        left.invert_yaxis()
        left.set_title("click a token")
        fig.follow(cells, array=after)
        bars = right.barh(names, [0] * 3, color=SHADES[:3], edgecolor=ink.BLACK, linewidth=0.8)
        for bar, widths in zip(bars, counts, strict=True):
            fig.follow(bar, width=widths)
        right.invert_yaxis()
        right.set(xlim=(0, N), xlabel=f"tokens seen, of {N}")
        right.set_title("seen after (colours as on the left; white: not yet)", fontsize=9)

    def describe(kind, k):
        one, two, three = tables[kind][:, k].sum(dim=-1).tolist()
        place, total = position(k, grid_size[1]), tables[kind].shape[-1]
        reach = f"{one} of {total} tokens after one block, {two} after two and {three} after three"
        return f"{kind}: the token in {place} sees {reach}."

    return Explorer(draw, describe, list(tables), "attention", grid_size, cell_name="token")


def explore_neighbours(
    images, gallery, tables: dict[str, Any], names: Sequence[str], truth: Sequence[str]
) -> Explorer:
    """Show a square of images, and what lies nearest to the clicked one, by features of the chosen
    kind.

    Args:
        images: n*n images.
        gallery: m images, what is searched.
        tables: kind of features -> (n*n, k) indices into the gallery, the nearest first; k is even.
        names: class of each image of the gallery.
        truth: class of each image of the square.
    """
    kinds, n, side = list(tables), round(len(images) ** 0.5), images.shape[-1]
    mosaic = images.unflatten(0, (n, n)).permute(2, 0, 3, 1, 4).flatten(3, 4).flatten(1, 2)

    def draw(fig, kind):
        draw_image(fig.picture, mosaic, "click an image")
        fig.text(0.7, 0.93, f"nearest by {kind}", ha="center", fontsize=10)
        across = tables[kind].shape[1] // 2
        width = 0.56 / across
        places = np.ndindex(2, across)
        for (row, column), found in zip(places, tables[kind].T.tolist(), strict=True):
            ax = fig.add_axes((0.42 + column * width, 0.5 - 0.4 * row, 0.9 * width, 0.32))
            pictures = [to_picture(gallery[index]) for index in found]
            fig.follow(draw_image(ax, gallery[0]), data=pictures)
            word = ax.text(side / 2, side + 5.3, "", ha="center", fontsize=8)
            fig.follow(word, text=[names[index] for index in found])

    def describe(kind, i):
        classes = [names[index] for index in tables[kind][i].tolist()]
        same = classes.count(truth[i])
        return f"{kind}: {same} of the {len(classes)} nearest images are of its class, {truth[i]}."

    return Explorer(draw, describe, kinds, "features", (n, n), kinds[-1])


def draw_similarity(
    fig: ExplorerFigure, image, tables: Mapping[str, Any], grid_size: tuple[int, int]
) -> None:
    """Draw an image and, for every name of ``tables``, the cosines of one patch with all patches.

    Args:
        tables: name -> (N, N) cosines.
    """
    draw_image(fig.picture, image, "click a patch")
    side = min(0.5 / len(tables), 0.3)
    height = side * WIDTH / HEIGHT
    start = 0.41 + (0.5 - side * len(tables)) / 2
    for number, (name, table) in enumerate(tables.items()):
        ax = fig.add_axes((start + number * (side + 0.01), 0.2, side, height))
        shown = draw_map(ax, np.zeros(grid_size), name, cmap=ink.DIVERGING, vmin=-1, vmax=1)
        fig.follow(shown, data=np.asarray(table).reshape(-1, *grid_size))
    place = fig.add_axes((0.94, 0.2, 0.012, height))
    fig.colorbar(shown, cax=place)
    place.tick_params(labelsize=7, pad=1)
    place.set_title("cosine", fontsize=7)


def explore_similarity(
    images, tables: Sequence[Mapping[str, np.ndarray]], grid_size: tuple[int, int]
) -> Explorer:
    """Show for the clicked patch which patches have features like its own, for every model.

    Args:
        images: n images.
        tables: for each picture, name of the model -> (N, N) cosines between its patches.
    """
    check_square(images[0])

    def draw(fig, i):
        draw_similarity(fig, images[i], tables[i], grid_size)

    def describe(i, k):
        counts = {name: int((table[k] > 0.5).sum()) - 1 for name, table in tables[i].items()}
        alike = ", ".join(f"{count} ({name})" for name, count in counts.items())
        patch = f"Picture {i}, patch {k} ({position(k, grid_size[1])})"
        return f"{patch}: patches with a cosine above 0.5: {alike}."

    return Explorer(draw, describe, range(len(images)), "picture", grid_size)


def explore_positions(image, tables: Mapping[str, Any], grid_size: tuple[int, int]) -> Explorer:
    """Show which positions are like that of the clicked patch, for one way of giving positions.

    Args:
        tables: name of the way -> (N, N) cosines between the positions of all patches.
    """
    check_square(image)

    def draw(fig, name):
        draw_similarity(fig, image, {name: tables[name]}, grid_size)

    def describe(name, k):
        cosines = np.asarray(tables[name][k]).copy()
        cosines[k] = np.nan  # with itself
        extremes = [
            f"{which} alike is patch {i} ({position(i, grid_size[1])}), cosine {cosines[i]:.2f}"
            for which, i in (("most", np.nanargmax(cosines)), ("least", np.nanargmin(cosines)))
        ]
        return f"{name}, patch {k} ({position(k, grid_size[1])}): {'; '.join(extremes)}."

    return Explorer(draw, describe, list(tables), "positions", grid_size)


def explore_softmax(
    scores: Mapping[str, Mapping[int, Any]], softmax: Callable, temperatures: Sequence[float]
) -> Explorer:
    """Show the weights that a query gives to some keys, for the clicked width and temperature.

    Args:
        scores: how the scores are scaled -> width d -> the scores of all keys (T,).
        softmax: turns scores (T,) into weights (T,).
        temperatures: the values to choose from; scores are divided by them.
    """
    widths = list(next(iter(scores.values())))
    places = [(d, t) for d in widths for t in temperatures]
    size = len(widths), len(temperatures)
    # scale -> (T,) for each place, what softmax receives and what it gives
    inputs = {scale: [of[d] / t for d, t in places] for scale, of in scores.items()}
    weights = {s: torch.stack([softmax(x) for x in rows]) for s, rows in inputs.items()}
    # entropy in nats, 0 if one key has all
    entropies = {s: torch.special.entr(w).sum(dim=-1).abs() for s, w in weights.items()}

    def draw(fig, scale):
        T, nats = weights[scale].shape[-1], entropies[scale].numpy()
        words = [f"d {d}\nT {t:g}\n{n:.2f}" for (d, t), n in zip(places, nats, strict=True)]
        table = nats.reshape(size), np.reshape(words, size)
        table_to_click(fig, *table, "entropy (nats); click a cell", np.log(T))
        ax = fig.add_axes((0.48, 0.2, 0.5, 0.69))
        below = {"ha": "center", "fontsize": 8, "transform": ax.get_xaxis_transform()}
        for key, bar in enumerate(ax.bar(range(T), [0.0] * T, color=ink.BLUE)):
            fig.follow(bar, height=weights[scale][:, key].tolist())
            numbers = [f"{row[key]:.1f}" for row in inputs[scale]]
            fig.follow(ax.text(key, -0.055, "", **below), text=numbers)
        ax.axhline(1 / T, color=ink.GREY, linestyle=":", zorder=0)
        ax.set(title="weights of the keys; dotted: uniform", ylim=(0, 1), ylabel="weight")
        ax.set_xticks([])
        ax.set_xlabel("score of each key, divided by the temperature", labelpad=16)

    def describe(scale, k):
        (d, t), w, nats = places[k], weights[scale][k], entropies[scale][k]
        return (
            f"Scores {scale}, d = {d}, temperature {t:g}: the largest of {len(w)} weights is "
            f"{w.max():.3f}, the entropy {nats:.2f} of at most {np.log(len(w)):.2f} nats."
        )

    return Explorer(draw, describe, list(scores), "scores", size, cell_name="width and temperature")


def explore_schedule(
    schedule: Callable, lengths: Sequence[int], peaks: Sequence[float], warmups: Sequence[int]
) -> Explorer:
    """Show the learning rate of every step, for the clicked peak and warm-up.

    Args:
        schedule: gives the rate for (step, total_steps, warmup_steps, peak_lr).
        lengths: numbers of steps to choose from.
        peaks: the largest rates to choose from.
        warmups: steps of warm-up to choose from, less than every length.
    """
    places = [(warmup, peak) for peak in peaks for warmup in warmups]
    words = [f"peak {peak:g}\n{warmup} steps" for warmup, peak in places]
    size = len(peaks), len(warmups)
    rates = {
        length: np.array([[schedule(i, length, *place) for i in range(length)] for place in places])
        for length in lengths
    }  # (places, length)

    def draw(fig, length):
        means, highest = rates[length].mean(axis=-1), rates[length].max()
        table = means.reshape(size), np.reshape(words, size)
        table_to_click(fig, *table, "colour: mean rate; click a cell", means.max())
        ax = fig.add_axes((0.5, 0.16, 0.48, 0.73))
        fig.follow(*ax.plot(rates[length][0], color=ink.BLUE), ydata=rates[length])
        ax.set(xlabel="step", ylabel="learning rate used", title="the schedule")
        ax.set(xlim=(0, length - 1), ylim=(0, 1.05 * highest))
        for warmup in warmups[1:]:
            ax.axvline(warmup - 1, color=ink.LIGHT, zorder=0)

    def describe(length, k):
        (warmup, peak), rate = places[k], rates[length][k]
        return (
            f"{length} steps, {warmup} of them warm-up, peak {peak:g}: the first step uses "
            f"{rate[0]:.1e}, step {rate.argmax()} the most, the last {rate[-1]:.1e}; the mean is "
            f"{rate.mean():.1e}."
        )

    middle = lengths[len(lengths) // 2]
    return Explorer(draw, describe, lengths, "length (steps)", size, middle, "peak and warm-up")
