"""Published weights in the course's model, by name."""

from vitedu.pretrained.loading import load_pretrained
from vitedu.pretrained.published import preprocessing

__all__ = ["load_pretrained", "preprocessing"]
