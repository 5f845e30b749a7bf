"""1.7 sincos_positions: positions as sines and cosines."""

from torch import Generator

from vitedu.checks.writing.kit import Case, Checker, distinct, draw


def cases(g: Generator) -> list[Case]:
    """Draw table sizes; position 0, short and long tables, two columns."""

    def case(n, D, part="values", name="{n} positions, embed_dim {D}", **rest):
        args = {"num_positions": n, "embed_dim": D}
        # float32 formulas differ by some units in the last place of the angle, which grows with n
        return Case(name.format(n=n, D=D), args, part=part, rtol=0, atol=2e-4, **rest)

    n, half = distinct(g, 2, 3, 9)
    n += n == 2 * half  # otherwise a division by one of the two passes for that by the other
    return [
        case(n, 2 * half),
        case(2 * half + 1, 2 * half, "other sizes"),
        # long enough to tell 10000 from 9999, and too long for the whole numbers of bfloat16
        case(130, 128, "other sizes"),
        case(300, 2 * half, "other sizes"),
        case(n, 2 * half + 2, "other sizes"),
        case(n, 4, "other sizes"),  # the example of the text
        case(n, 2, "rare sizes"),
        case(1, 2 * half, "rare sizes"),
        # beyond the tables of published code, whose max_len goes up to 5000; its one wave has no
        # rounded angle
        case(5100, 2, "rare sizes"),
        case(2 * half, 2 * half, "other sizes"),
        case(n, 2 * draw(g, 2, 9) + 1, "errors", "embed_dim {D} is odd", raises="ValueError"),
    ]


CHECKER = Checker()
