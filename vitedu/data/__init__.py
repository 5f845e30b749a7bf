"""Images to learn from: drawn on the spot, CIFAR-10, or a folder of one's own."""

from vitedu.data.loading import Data, load_data

__all__ = ["Data", "load_data"]
