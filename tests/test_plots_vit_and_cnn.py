"""The card and the explorer of notebook 06 show the numbers they are given."""

import matplotlib

matplotlib.use("Agg")

from vitedu.plots import vit_and_cnn as plots  # noqa: E402


def test_card_marks_the_larger_number_and_is_written_to_a_file(tmp_path):
    """Shares stand in percent, other numbers whole; equal numbers have no mark."""
    rows = {
        "right": {"CNN": 0.9, "ViT": 0.84},
        "images a second": {"CNN": 250.0, "ViT": 1250.4},
        "equal": {"CNN": 0.5, "ViT": 0.5},
    }
    fig = plots.show_card(rows, ["my choice: ViT"], path=tmp_path / "card.png")
    texts = [text for text in fig.axes[0].texts if text.get_text().strip()]
    words = [text.get_text() for text in texts]
    assert {"90.0%", "84.0%", "250", "1,250", "1  right", "my choice: ViT"} <= set(words)
    bold = [text.get_text() for text in texts if text.get_weight() == "bold"]
    assert bold == ["CNN", "90.0%", " ◀", "ViT", "1,250", " ◀"]
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
