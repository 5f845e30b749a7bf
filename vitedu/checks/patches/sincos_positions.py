"""Checker of sincos_positions: its cases, its known mistakes, and what is said of them."""

import torch

from vitedu import patches as reference
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw
from vitedu.checks.probing import Case


def sincos_cases(g: torch.Generator) -> list[Case]:
    """Draw table sizes; position 0, short and long tables, two columns."""

    def case(n, D, **rest):
        # float32 formulas differ by some units in the last place of the angle, which grows with n
        return Case(
            f"{n} positions, embed_dim {D}",
            {"num_positions": n, "embed_dim": D},
            rtol=0,
            atol=2e-4,
            **rest,
        )

    n, half = distinct(g, 2, 3, 9)
    odd = 2 * draw(g, 2, 9) + 1
    return [
        case(n, 2 * half),
        case(2 * half + 1, 2 * half, part="other sizes"),
        case(200, 16 + 2 * half, part="other sizes"),  # long enough to tell 10000 from 9999
        case(n, 2, part="other sizes"),
        case(1, 2 * half, part="other sizes"),
        Case(
            f"embed_dim {odd} is odd",
            {"num_positions": n, "embed_dim": odd},
            part="errors",
            raises="ValueError",
        ),
    ]


def faulty_sincos(mistakes: frozenset[str]):
    """Fill the table with the named mistakes made."""

    def sincos_positions(num_positions, embed_dim):
        n, D = num_positions, embed_dim
        if D % 2:
            return reference.sincos_positions(n, D)
        position = torch.arange(n, dtype=torch.float64).unsqueeze(1)
        if "positions_from_one" in mistakes:
            position = position + 1
        pair = torch.arange(D // 2, dtype=torch.float64)
        sine_exponent, cosine_exponent = 2 * pair / D, 2 * pair / D
        if "pair_over_dim" in mistakes:
            sine_exponent = cosine_exponent = pair / D
        if "each_column_its_own" in mistakes:
            cosine_exponent = (2 * pair + 1) / D
        if "reaches_the_base" in mistakes:
            sine_exponent = cosine_exponent = pair / max(1, D // 2 - 1)
        base = 1000.0 if "another_base" in mistakes else 10000.0
        sign = 1 if "frequencies_rise" in mistakes else -1
        sine, cosine = (position * base ** (sign * e) for e in (sine_exponent, cosine_exponent))
        if "degrees" in mistakes:
            sine, cosine = torch.deg2rad(sine), torch.deg2rad(cosine)
        columns = [sine.sin(), cosine.cos()]
        if "cosine_first" in mistakes:
            columns.reverse()
        if "sines_then_cosines" in mistakes:
            return torch.cat(columns, dim=1).float()
        return torch.stack(columns, dim=-1).flatten(1).float()

    return sincos_positions


SINCOS_BANK = (
    Misconception(
        "sines_then_cosines", "all sines come first, then all cosines", "even columns sine, odd columns cosine",
        "Both layouts are in use; this course, like the paper, takes turns.",
        "Fill table[:, 0::2] and table[:, 1::2], or stack the pairs and flatten.",
    ),
    Misconception(
        "cosine_first", "even columns hold the cosine", "even columns sine, odd columns cosine",
        "Row 0 shows it: sin 0 and cos 0 take turns.", "Look at which of the two goes to column 0.",
    ),
    Misconception(
        "pair_over_dim", "the exponent runs only half as far", "10000 to the power 2i/D for column pair i",
        "The slowest wave would be a hundred times too fast.", "Look at the exponent: i counts pairs of columns, 2i the columns.",
    ),
    Misconception(
        "each_column_its_own", "sine and cosine of a pair have different frequencies", "one angle for both columns of a pair",
        "Only with the same angle is a shift of positions a rotation.", "Use the same 2i for columns 2i and 2i+1.",
    ),
    Misconception(
        "reaches_the_base", "the exponent reaches 1 at the last pair", "exponents 2i/D, the last one below 1",
        "Some libraries do so; the formula of the paper divides by D.", "Look at the denominator of the exponent.",
    ),
    Misconception(
        "another_base", "the base is not 10000", "base 10000", "The base sets the longest wave.", "Count the zeros.",
    ),
    Misconception(
        "frequencies_rise", "the frequencies rise from column to column", "position divided by 10000 ** (2i/D)",
        "Waves shorter than one step can not tell neighbours apart reliably.", "Divide, or use a negative exponent.",
    ),
    Misconception(
        "positions_from_one", "positions count from 1", "positions 0 .. num_positions-1", "Every row is one late.",
        "torch.arange(n) starts at 0.",
    ),
    Misconception(
        "degrees", "the angle is taken in degrees", "radians", "All waves would be 57 times too long.", "torch.sin takes radians.",
    ),
    Misconception(
        "double_table", "the table is float64", "float32, like every table made from sizes alone",
        "Added to float32 tokens it would turn all of them into float64.", "Finish with .float().",
        build=lambda: lambda num_positions, embed_dim: reference.sincos_positions(num_positions, embed_dim).double(),
    ),
)  # fmt: skip

CHECKER = Checker(
    "sincos_positions",
    reference.sincos_positions,
    sincos_cases,
    faulty_sincos,
    SINCOS_BANK,
    proves={
        "values": "sines and cosines take turns, at the right frequencies",
        "other sizes": "also for long tables, one position and two columns",
        "errors": "an odd embed_dim is refused",
    },
)
