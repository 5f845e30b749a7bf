import math

import torch

from vitedu import patches as reference
from vitedu.checks.kit import NEGATIVE_DIVISOR, Case, Checker, Mistake, distinct, draw, families


def cases(g: torch.Generator) -> list[Case]:
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
        case(300, 16 + 2 * half, "other sizes"),
        case(300, 2 * half, "other sizes"),
        case(n, 2, "other sizes"),
        case(1, 2 * half, "other sizes"),
        # beyond the tables of published code, whose max_len goes up to 5000; its one wave has no rounded angle
        case(5100, 2, "other sizes"),
        case(2 * half, 2 * half, "other sizes"),
        case(n, 2 * draw(g, 2, 9) + 1, "errors", "embed_dim {D} is odd", raises="ValueError"),
    ]


MISTAKES = (
    Mistake(
        "sines_then_cosines",
        "all sines come first, then all cosines",
        "even columns sine, odd columns cosine",
        "Both layouts are in use; this course, like the paper, takes turns.",
        "Fill table[:, 0::2] and table[:, 1::2], or stack the pairs and flatten.",
        {"torch.stack(": "torch.cat(", "dim=-1).flatten(1)": "dim=1)"},
    ),
    Mistake(
        "cosine_first",
        "even columns hold the cosine",
        "even columns sine, odd columns cosine",
        "Row 0 shows it: sin 0 and cos 0 take turns.",
        "Look at which of the two goes to column 0.",
        {"[angle.sin(), angle.cos()]": "[angle.cos(), angle.sin()]"},
    ),
    Mistake(
        "pair_over_dim",
        "the exponent runs only half as far",
        "10000 to the power 2i/D for column pair i",
        "The slowest wave would be a hundred times too fast.",
        "Look at the exponent: i counts pairs of columns, 2i the columns.",
        {"embed_dim, 2, dtype": "embed_dim // 2, 1, dtype"},
    ),
    Mistake(
        "exponent_doubled",
        "the exponent runs twice as far",
        "10000 to the power 2i/D for column pair i",
        "torch.arange(0, D, 2) gives 2i already; a second factor of 2 makes every wave but the first too slow.",
        "Print your exponents: they run from 0 to just below 1.",
        {"embed_dim, 2, dtype": "embed_dim * 2, 4, dtype"},
    ),
    Mistake(
        "each_column_its_own",
        "sine and cosine of a pair have different frequencies",
        "one angle for both columns of a pair",
        "Only with the same angle is a shift of positions a rotation.",
        "Use the same 2i for columns 2i and 2i+1.",
        {"angle.cos()": "(angle / 10000 ** (1 / embed_dim)).cos()"},
    ),
    Mistake(
        "reaches_the_base",
        "the exponent reaches 1 at the last pair",
        "exponents 2i/D, the last one below 1",
        "Some libraries do so; the formula of the paper divides by D.",
        "Look at the denominator of the exponent.",
        {"dtype=torch.float64) / embed_dim": "dtype=torch.float64) / max(1, embed_dim - 2)"},
    ),
    Mistake(
        "another_base",
        "the base is not 10000",
        "base 10000",
        "The base sets the longest wave.",
        "Count the zeros.",
        {"10000**exponent": "1000**exponent"},
    ),
    Mistake(
        "frequencies_rise",
        "the frequencies rise from column to column",
        "position divided by 10000 ** (2i/D)",
        "Waves shorter than one step cannot tell neighbours apart reliably.",
        "Divide, or use a negative exponent.",
        {"position / 10000": "position * 10000"},
    ),
    Mistake(
        "positions_from_one",
        "positions count from 1",
        "positions 0 .. num_positions-1",
        "Every row is one late.",
        "torch.arange(n) starts at 0.",
        {".unsqueeze(1)": ".unsqueeze(1) + 1"},
    ),
    Mistake(
        "cut_short",
        "the table ends before num_positions",
        "num_positions rows",
        "Tables made in advance have a last row.",
        "Make the table as long as the argument says.",
        {"arange(num_positions": "arange(min(num_positions, 5000)"},
        part="other sizes",
        also=({"arange(num_positions": "arange(min(num_positions, 1000)"},),
    ),
    Mistake(
        "power_first",
        "the power is taken before the division",
        "10000 ** (2i / D)",
        "Column pair 0 would divide by 0: ** binds more tightly than / and *.",
        "Put the exponent in brackets.",
        {"10000**exponent": "(10000**2 * exponent / 2)"},
    ),
    Mistake(
        "positions_scaled",
        "the positions are scaled to 0 .. 1",
        "positions 0 .. num_positions-1",
        "The code of a place would depend on the length of the table.",
        "Use the numbers of the rows as they are.",
        {
            "position = torch.arange(num_positions,": "position = torch.linspace(0, 1, num_positions,"
        },
    ),
    Mistake(
        "degrees",
        "the angle is taken in degrees",
        "radians",
        "All waves would be 57 times too long.",
        "torch.sin takes radians.",
        {"angle = position": "angle = math.pi / 180 * position"},
    ),
    families.DOUBLE_TABLE.by(
        {},
        build=lambda: (
            lambda num_positions, embed_dim: reference.sincos_positions(
                num_positions, embed_dim
            ).double()
        ),
    ),
)


def by_slices(num_positions, embed_dim):
    if embed_dim % 2 == 1:
        raise ValueError("odd")
    table = torch.zeros(num_positions, embed_dim)
    position = torch.arange(num_positions).float().unsqueeze(1)
    rate = torch.exp(torch.arange(0, embed_dim, 2).float() * (-math.log(10000.0) / embed_dim))
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def by_loops(num_positions, embed_dim):
    if embed_dim & 1:
        raise ValueError(f"embed_dim={embed_dim}")
    rows = []
    for p in range(num_positions):
        angles = [p / 10000 ** (2 * (j // 2) / embed_dim) for j in range(embed_dim)]
        rows.append([math.cos(a) if j % 2 else math.sin(a) for j, a in enumerate(angles)])
    return torch.tensor(rows)


def by_phase(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError("embed_dim must be even")
    column = torch.arange(embed_dim, dtype=torch.float64)
    rate = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -2 * (column // 2) / embed_dim)
    turn = (column % 2) * math.pi / 2
    position = torch.arange(num_positions, dtype=torch.float64)
    return torch.sin(torch.outer(position, rate) + turn).to(torch.float32)


def by_complex_powers(num_positions, embed_dim):
    if embed_dim % 2:
        raise ValueError("embed_dim must be even")
    rate = 10000 ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
    circle = torch.polar(torch.ones_like(rate), rate)
    turned = circle[None] ** torch.arange(num_positions, dtype=torch.float64)[:, None]
    return torch.view_as_real(turned)[..., [1, 0]].flatten(1).float()


CHECKER = Checker(
    "sincos_positions",
    proves={
        "values": "sines and cosines take turns, at the right frequencies",
        "other sizes": "also for long tables, one position and two columns",
        "errors": "an odd embed_dim is refused",
    },
    equivalent={
        NEGATIVE_DIVISOR: ("if embed_dim % -2:",),
        "whole numbers divided by float64 are float64": (
            "position = torch.arange(num_positions).unsqueeze(1)",
        ),
    },
    left_open={
        "exponents rounded to float32 are right to the tolerance of a float32 table": (
            "(0, embed_dim, 2)",
        ),
    },
    special="num_positions == 1; embed_dim == 2; num_positions == embed_dim",
)
