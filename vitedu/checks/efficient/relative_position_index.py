"""8.6 relative_position_index: one number for each offset."""

from vitedu.checks.efficient.relative_position_index_driver import whole_numbers
from vitedu.checks.writing.kit import also, shaped

cases = shaped(
    "grid_size = (gh, gw)",
    also("values", "", shapes="grid_size = (gw, gh)"),
    also("other sizes", "a square", gw="gh"),
    also("other sizes", "a table of more than 256 numbers", gh=9, gw=10),
    also("other sizes", "one row", gh=1),
    also("other sizes", "one column", gw=1),
    also("one token", "one token", gh=1, gw=1),
    ranges={"gh": (3, 6), "gw": (3, 6)},
    name="{gh} and {gw} tokens along the sides",
    driver=whole_numbers.__name__,
)
