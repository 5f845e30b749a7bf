"""8.3 window_merge: put the windows back."""

from vitedu.checks.efficient.window_partition import GRIDS, SIZES
from vitedu.checks.writing.kit import shaped

cases = shaped("windows: B*a*b w*w D; window_size = w; grid_size = (a*w, b*w)", *GRIDS, **SIZES)
