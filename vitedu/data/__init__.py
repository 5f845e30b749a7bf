"""Images to learn from: photographs, drawn shapes, or a folder of one's own."""

from vitedu.data.loading import Data, load_data

__all__ = ["Data", "load_data"]
