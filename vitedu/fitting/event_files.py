"""The rows of a training run as files that TensorBoard shows, where it is installed.

Role: ``EventFiles``. Not here: the rows (``history``), the other files of a run (``runs``).
"""

import importlib.util
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitedu.fitting.history import EpochResult

PATTERN = "events.out.tfevents.*"


class EventFiles:
    """Write a point for each number of each epoch; without TensorBoard, write nothing.

    Args:
        folder: where the files go, ``PATTERN``; None to write nothing.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.writer: Any = None  # a SummaryWriter, once there is something to write
        has_tensorboard = importlib.util.find_spec("tensorboard") is not None
        self.is_possible = has_tensorboard and folder is not None

    def add(self, row: EpochResult) -> None:
        """Write one epoch; points of it or later, left by an interrupted run, are dropped."""
        if not self.is_possible:
            return
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter  # slow, and not everywhere

            self.writer = SummaryWriter(str(self.folder), purge_step=row.epoch)
        for name, value in asdict(row).items():
            if name != "epoch":
                split, _, what = name.partition("_")
                is_of_split = split in ("train", "validation")  # one figure for both splits
                self.writer.add_scalar(f"{what}/{split}" if is_of_split else name, value, row.epoch)
        self.writer.flush()

    def close(self) -> None:
        """End the file."""
        if self.writer is not None:
            self.writer.close()
