"""1.8 sincos_positions_2d: rows and columns."""

from torch import Generator

from vitedu.checks.writing.kit import Case, Checker, distinct, draw


def cases(g: Generator) -> list[Case]:
    """Draw grids that are not square, the wide one first, and one that is."""

    def case(gh, gw, D, part="other sizes", name="grid {gh} x {gw}, embed_dim {D}", **rest):
        args, name = {"grid_size": (gh, gw), "embed_dim": D}, name.format(gh=gh, gw=gw, D=D)
        return Case(name, args, part=part, rtol=0, atol=2e-4, **rest)

    gh, gw = sorted(distinct(g, 2, 2, 6))
    D = 8 * draw(g, 1, 2) + 4  # 12 or 20: 8 does not divide it
    refused = ("errors", "embed_dim {D} is not divisible by 4")
    return [
        case(gh, gw, D, "values"),
        case(gw, gh, D),
        case(gh, gh, D),
        case(1, gw, D),
        case(gh, 1, D),
        case(2, 8, 128),
        case(9, 8, D),  # more than 64 cells
        case(gh, gw, 4, "rare sizes"),
        # half of it, cut off, is even: the table of one direction has nothing to refuse
        case(gh, gw, D + 1, *refused, raises="ValueError"),
        case(gh, gw, D + 2, *refused, raises="ValueError"),
    ]


CHECKER = Checker()
