"""Pictures with a slider.

Role: the same figures as ``plots``, one for each position of a slider. Not here: any drawing.

The frames are drawn beforehand and travel inside the cell's output with a few lines of JavaScript:
no live kernel and no widget library is needed, so the slider also moves in an exported HTML page. Where
a front end runs no scripts, the first frame remains as a still picture.
"""

import base64
import html
import json
import uuid

from vitedu.plots.patches import show_patches


class FrameSlider:
    """A row of figures, one shown at a time.

    Args:
        figures: matplotlib figures that draw themselves (``_repr_png_``), all of one size.
        labels: what the slider says at each of them.
        name: what the slider changes, such as "patch size".
        start: the frame that is shown first, and that stays where no script runs.
    """

    def __init__(self, figures, labels, name: str, start: int = 0):
        self.frames = [figure._repr_png_() for figure in figures]
        self.labels = [str(label) for label in labels]
        if len(self.frames) != len(self.labels) or not self.frames:
            raise ValueError(
                f"a slider needs one label for each figure (got {len(self.frames)} figures and "
                f"{len(self.labels)} labels)."
            )
        if not 0 <= start < len(self.frames):
            raise ValueError(f"start must be in 0 .. {len(self.frames) - 1} (got {start}).")
        self.name = name
        self.start = start

    def __repr__(self) -> str:
        return f"FrameSlider({self.name}: {', '.join(self.labels)})"

    def _repr_png_(self) -> bytes:
        return self.frames[self.start]

    def _repr_html_(self) -> str:
        pictures = [f"data:image/png;base64,{base64.b64encode(f).decode()}" for f in self.frames]
        key = f"slider-{uuid.uuid4().hex}"
        name, label = html.escape(self.name), html.escape(self.labels[self.start])
        return f"""
<div id="{key}">
  <label>{name}: <output>{label}</output>
    <input type="range" min="0" max="{len(self.frames) - 1}" value="{self.start}" step="1">
  </label><br>
  <img src="{pictures[self.start]}" alt="{name}: {label}">
  <script>
    (function (box) {{
      const pictures = {json.dumps(pictures)}, labels = {script_json(self.labels)};
      box.querySelector("input").oninput = function () {{
        box.querySelector("img").src = pictures[this.value];
        box.querySelector("output").textContent = labels[this.value];
      }};
    }})(document.getElementById("{key}"));
  </script>
</div>"""


def script_json(value) -> str:
    """Write a value as JSON that can not end the script it stands in."""
    return json.dumps(value).replace("</", "<\\/")


def explore_patch_size(image, patch_sizes=(16, 8, 4, 2)) -> FrameSlider:
    """Show an image and its patches, with a slider for the patch size.

    Args:
        image: (C, H, W), uint8 or floats in [0, 1]; H and W divisible by every size.
        patch_sizes: the positions of the slider, in pixels.
    """
    figures = [show_patches(image, P) for P in patch_sizes]
    labels = [f"{P} px" for P in patch_sizes]
    return FrameSlider(figures, labels, "patch size", start=len(labels) // 2)
