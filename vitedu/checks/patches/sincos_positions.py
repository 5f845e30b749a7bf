"""1.7 sincos_positions: positions as sines and cosines."""

from vitedu.checks.writing.kit import also, refused, shaped

cases = shaped(
    "num_positions = n; embed_dim = 2*h",
    also("other sizes", "", n="2*h + 1"),
    # long enough to tell 10000 from 9999, and too long for the whole numbers of bfloat16
    also("other sizes", "", n=130, h=64),
    also("other sizes", "", h="2*k + 1"),  # 4 does not divide embed_dim
    also("other sizes", "", h=2),  # the example of the text
    also("rare sizes", "", h=1),
    also("rare sizes", "", n=1),
    # beyond the tables of published code, whose max_len goes up to 5000; its one wave has no
    # rounded angle
    also("rare sizes", "", n=5100, h=1),
    also("other sizes", "", n="2*h"),
    refused("embed_dim {2*h + 1} is odd", shapes="num_positions = n; embed_dim = 2*h + 1"),
    # odd, so that a division by one of the two does not pass for that by the other
    letters={"n": "2*m + 1"},
    ranges={"h": (3, 9), "k": (1, 4), "m": (1, 4)},
    name="{n} positions, embed_dim {2*h}",
    # float32 formulas differ by some units in the last place of the angle, which grows with n
    rtol=0,
    atol=2e-4,
)
