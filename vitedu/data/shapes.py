"""The drawn data set: ten kinds of bright shapes on a dark, gently textured ground.

Role: draw labelled colour images with object masks from a seed, so that the course needs no
download. Not here: splits and normalisation (``data``).

Every shape is a signed distance function: negative inside, zero on the edge, positive outside. The
distance in pixels gives an anti-aliased edge at any image size. The contrast has one sign, the
object is brighter than its ground, because a small ViT does not learn in minutes without it. Labels
survive a left-right flip: no class is the mirror image of another.

Legend: B images drawn at once, S image_size.

Reference: Quilez, "2D distance functions", https://iquilezles.org/articles/distfunctions2d/
"""

import numpy as np

Array = np.ndarray
BLOCK = 500  # images drawn at once: small enough for the cache of a core
RADIUS = (0.22, 0.42)  # of the object, as a share of the image
TURN = 0.45  # largest rotation either way, radians
NOISE = 0.04  # standard deviation of the grain, on a scale of 0 to 1


# -- the shapes, each within about one unit of the origin; v points up ----------------------------


def disk(u: Array, v: Array) -> Array:
    return np.hypot(u, v) - 0.85


def ring(u: Array, v: Array) -> Array:
    return np.abs(np.hypot(u, v) - 0.68) - 0.22


def moon(u: Array, v: Array) -> Array:
    u = u - 0.2
    return np.maximum(np.hypot(u, v) - 0.95, 0.82 - np.hypot(u - 0.5, v))


def square(u: Array, v: Array) -> Array:
    return np.maximum(np.abs(u), np.abs(v)) - 0.75


def triangle(u: Array, v: Array) -> Array:
    v = v + 0.1
    return np.maximum(np.abs(u) * 0.866 + v * 0.5, -v) - 0.55


def cross(u: Array, v: Array) -> Array:
    u, v = np.abs(u), np.abs(v)
    return np.maximum(np.maximum(u, v) - 0.9, np.minimum(u, v) - 0.28)


def star(u: Array, v: Array) -> Array:
    x, y = fold(u, v, points=5)
    # the edge runs from the tip (1, 0) to the notch at radius 0.45, half a sector further
    notch_x, notch_y = 0.45 * np.cos(np.pi / 5), 0.45 * np.sin(np.pi / 5)
    length = np.hypot(1 - notch_x, notch_y)
    return ((x - 1) * notch_y + y * (1 - notch_x)) / length


def flower(u: Array, v: Array) -> Array:
    x, y = fold(u, v, points=5)
    petals = np.hypot(x - 0.58, y) - 0.36
    return np.maximum(np.minimum(petals, x - 0.5), 0.2 - x)


def heart(u: Array, v: Array) -> Array:
    x, y = np.abs(u) / 1.65, v / 1.65 + 0.55
    lobe = np.hypot(x - 0.25, y - 0.75) - np.sqrt(2) / 4
    along = 0.5 * np.maximum(x + y, 0)
    edge = np.minimum(np.hypot(x, y - 1), np.hypot(x - along, y - along)) * np.sign(x - y)
    return 1.65 * np.where(x + y > 1, lobe, edge)


def arrow(u: Array, v: Array) -> Array:
    head = np.maximum(np.abs(u) * 0.707 + (v - 0.95) * 0.707, -v)
    shaft = np.maximum(np.abs(u) - 0.25, np.abs(v + 0.45) - 0.5)
    return np.minimum(head, shaft)


def fold(u: Array, v: Array, points: int) -> tuple[Array, Array]:
    """Map the plane onto half a sector of a figure with so many points, the first one upwards."""
    sector = 2 * np.pi / points
    angle = np.arctan2(u, v)
    angle = np.abs(angle - sector * np.round(angle / sector))
    radius = np.hypot(u, v)
    return radius * np.cos(angle), radius * np.sin(angle)


SHAPES = {
    shape.__name__: shape
    for shape in (disk, ring, moon, square, triangle, cross, star, flower, heart, arrow)
}


# -- the pictures ---------------------------------------------------------------------------------


def draw_shapes(
    count: int, *, seed: int = 0, stream: int = 0, image_size: int = 32
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw labelled images with masks.

    Args:
        count: how many. A smaller count gives the first images of a larger one.
        seed: of all draws.
        stream: independent pictures of one seed: 0 for training, 1 validation, 2 test.
        image_size: S, pixels.

    Returns:
        images (count, 3, S, S) uint8, labels (count,) int64, masks (count, S, S) bool, true on the
        object. Images 0 to 9, 10 to 19 and so on hold each class once.

    Example:
        >>> images, labels, masks = draw_shapes(20, seed=1)
        >>> images.shape, sorted(labels[:10].tolist())
        ((20, 3, 32, 32), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    blocks = [
        _draw_block(
            np.random.SeedSequence(seed, spawn_key=(stream, start // BLOCK)),
            image_size,
            min(BLOCK, count - start),
        )
        for start in range(0, count, BLOCK)
    ]
    images, labels, masks = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return images, labels, masks


def _draw_block(seeds: np.random.SeedSequence, S: int, count: int) -> tuple[np.ndarray, ...]:
    """Draw the first ``count`` images of a block; drawing numbers for all keeps these the same."""
    rng = np.random.Generator(np.random.PCG64(seeds))
    K = len(SHAPES)
    labels = rng.permuted(np.tile(np.arange(K), (BLOCK // K, 1)), axis=1).ravel()[:count]

    def draw(low, high, *shape):  # one number an image, ready to broadcast over pixels
        return rng.uniform(low, high, (BLOCK, *shape))[:count].astype(np.float32)[..., None, None]

    axis = (np.arange(S, dtype=np.float32) + 0.5) / S
    x, y = axis[None, None, :], 1 - axis[None, :, None]  # 0 .. 1; y points up

    # where the object stands: as far from the middle as its radius allows
    radius = draw(*RADIUS)
    reach = np.maximum(0.5 - radius, 0)
    centre_x, centre_y = 0.5 + reach * draw(-1, 1), 0.5 + reach * draw(-1, 1)
    turn, mirror = draw(-TURN, TURN), np.sign(draw(-1, 1))
    dx, dy = (x - centre_x) / radius, (y - centre_y) / radius  # (B, S, S)
    u = mirror * (dx * np.cos(turn) + dy * np.sin(turn))
    v = dy * np.cos(turn) - dx * np.sin(turn)
    distance = np.empty((count, S, S), np.float32)
    for label, shape in enumerate(SHAPES.values()):
        chosen = labels == label
        distance[chosen] = shape(u[chosen], v[chosen])
    pixels = distance * radius * S  # distance from the edge, in pixels
    cover = np.clip(0.5 - pixels, 0, 1)  # (B, S, S): share of the pixel inside
    shadow = np.exp(-np.maximum(pixels, 0) / (0.05 * S))

    # the ground: two neighbouring dark hues, some soft lights, a halo of shade around the object
    hue = draw(0, 1, 1)
    angle = draw(0, 2 * np.pi)
    ramp = 0.5 + 0.6 * ((x - 0.5) * np.cos(angle) + (y - 0.5) * np.sin(angle))
    lights = np.zeros((count, S, S), np.float32)
    for _ in range(4):
        size, strength = draw(0.06, 0.2), draw(0.0, 0.22)
        apart = np.hypot(x - draw(0, 1), y - draw(0, 1))
        lights += strength * np.clip(0.5 - (apart - size) * S / 2, 0, 1)
    dark, light = draw(0.06, 0.16, 1), draw(0.2, 0.36, 1)
    ground = _colour(hue, 0.25) * dark * (1 - ramp[:, None])
    ground = ground + _colour(hue + draw(-0.12, 0.12, 1), 0.25) * light * ramp[:, None]
    ground = ground + _colour(hue, 0.45) * lights[:, None]
    ground = ground * (1 - 0.35 * shadow[:, None])

    # the object: a light colour that goes with the ground, brighter towards the top left
    partner = hue + np.sign(draw(-1, 1, 1)) * draw(0.25, 0.5, 1)
    shine = np.clip(0.92 + 0.12 * (dy - dx), 0.7, 1.1)
    paint = _colour(partner, draw(0.15, 0.5, 1)) * draw(0.62, 0.95, 1) * shine[:, None]

    image = ground + (paint - ground) * cover[:, None]  # (B, 3, S, S)
    image += NOISE * rng.standard_normal(image.shape, dtype=np.float32)
    images = np.clip(image * 255 + 0.5, 0, 255).astype(np.uint8)
    return images, labels, pixels < 0


def _colour(hue: np.ndarray, white: float | np.ndarray) -> np.ndarray:
    """Turn hues (B, 1, 1, 1) in 0 .. 1 into colours (B, 3, 1, 1), mixed with some white."""
    phase = np.array([0, 1 / 3, 2 / 3], np.float32)[:, None, None]
    pure = 0.5 + 0.5 * np.cos(2 * np.pi * (hue - phase))
    return (pure + (1 - pure) * white).astype(np.float32)
