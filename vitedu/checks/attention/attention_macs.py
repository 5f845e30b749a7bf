"""2.7 attention_macs: what it costs."""

from vitedu.checks.writing.kit import also, shaped

LARGE = "num_tokens = 49 * side**2 + 1; embed_dim = 64 * heads + rest"
RANGES = {"long": (90, 130), "narrow": (3, 9), "side": (8, 32), "heads": (6, 16), "rest": (41, 47)}

cases = shaped(
    "num_tokens = T; embed_dim = D",
    also("values", "", shapes="num_tokens = T; embed_dim = D + 41"),
    also("other sizes", "", shapes="num_tokens = long; embed_dim = narrow"),
    also("rare sizes", "", T=1),
    also("rare sizes", "", D=1),
    also("other sizes", "", T="D"),
    also("other sizes", "", shapes="num_tokens = side**2 + 1; embed_dim = 64 * heads"),
    also("other sizes", "more than 2**31", shapes=LARGE),
    ranges=dict.fromkeys("TD", (5, 40)) | RANGES,
    number=True,
    rtol=2e-7,
)
