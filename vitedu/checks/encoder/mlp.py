"""3.3 Mlp: two layers and a bend between them."""

from vitedu.checks.writing.kit import USUAL, also, shaped
from vitedu.encoder import Mlp

cases = shaped(
    "x: B T D",
    also("other sizes", "one token", T=1),
    also("other sizes", "as many hidden units as columns", M="D"),
    also("one hidden unit", "one hidden unit", M=1),
    also("other sizes", "as many tokens as columns", T="D"),
    *USUAL,
    layer=Mlp,
    init="embed_dim = D; hidden_dim = M",
    ranges={"D": (3, 7), "M": (3, 11)},  # M is never 4 * D
    scale=1.5,
    name="Mlp({D}, {M}) on x ({B}, {T}, {D})",
)
