"""Colours of all figures: those of Okabe and Ito, told apart by every common kind of colour vision.

Where a colour carries meaning, a label, marker or line style carries it too. Maps: ``SEQUENTIAL``
for amounts that start at zero, ``DIVERGING`` for signed values (give it symmetric limits).

Reference: Okabe and Ito 2008, "Color universal design", https://jfly.uni-koeln.de/color/
"""

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
RED = "#D55E00"  # vermilion: stays apart from GREEN for red-green blindness
PINK = "#CC79A7"
GREY = "#7F7F7F"
LIGHT = "#E6E6E6"  # backgrounds, grids, what is switched off

CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, BLACK, YELLOW)  # the order for several curves
GOOD, BAD = GREEN, RED  # always beside a mark or a word, never alone
SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"


def pick(number: int) -> str:
    """Pick the colour of the curve of a number, counted from 0; after eight they come again."""
    return CYCLE[number % len(CYCLE)]
