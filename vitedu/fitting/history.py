"""What a training run did: rows of numbers, a table, a closing line, the error of a broken loss.

Role: plain records. Not here: any measuring (``loop``, ``evaluating``), any figure (``plots``).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class EpochResult:
    """What one epoch measured. Losses are means over images; validation has no smoothing."""

    epoch: int  # 1 for the first
    train_loss: float  # each image measured before the update that it caused
    train_accuracy: float  # in [0, 1], likewise, on augmented images
    validation_loss: float  # after the epoch
    validation_accuracy: float  # in [0, 1]
    lr: float  # mean of the learning rates that this epoch's steps used
    seconds: float  # training alone, without validation
    images_per_second: float  # training alone


@dataclass
class History:
    """What a training run did. ``print(history.table())`` shows it."""

    device: str  # where it ran
    precision: str  # the type of matrix products
    rows: list[EpochResult] = field(default_factory=list)  # one for each epoch that was finished
    interrupted: bool = False  # stopped by Ctrl-C or a notebook's stop button

    def column(self, name: str) -> list[float]:
        """Return one field of every row, such as ``"train_loss"``."""
        return [getattr(row, name) for row in self.rows]

    @property
    def seconds(self) -> float:
        """Seconds of training, validation not counted."""
        return sum(self.column("seconds"))

    def table(self) -> str:
        """Return the epochs as text, one line each."""
        return "\n".join([TABLE_HEADER, *(table_line(row) for row in self.rows)])


TABLE_HEADER = (
    "epoch  train loss  train acc  val loss  val acc   mean lr  seconds  images/s\n"
    "-----  ----------  ---------  --------  -------  --------  -------  --------"
)


def table_line(row: EpochResult) -> str:
    """Return one epoch as a line under ``TABLE_HEADER``."""
    return (
        f"{row.epoch:5d}  {row.train_loss:10.4f}  {row.train_accuracy:9.1%}  "
        f"{row.validation_loss:8.4f}  {row.validation_accuracy:7.1%}  {row.lr:8.2e}  "
        f"{row.seconds:7.1f}  {row.images_per_second:8.0f}"
    )


def closing_line(history: History) -> str:
    """Say in one line how a run ended."""
    end = "interrupted" if history.interrupted else "trained"
    if not history.rows:
        return f"{end} before the first epoch was finished"
    last, moment = history.rows[-1], ""
    if history.interrupted:
        moment = f", both of epoch {last.epoch}; the weights are those of the moment it was stopped"
    return (
        f"{end} after {last.epoch} epochs, {history.seconds:.0f} s: train accuracy "
        f"{last.train_accuracy:.1%}, validation accuracy {last.validation_accuracy:.1%}{moment}"
    )


class DivergedError(RuntimeError):
    """The loss stopped being a number."""


def broken_loss(where: str, remedies: list[str]) -> str:
    """Say that a loss broke, where, and what to try."""
    return (
        f"the loss is not finite any more: {where}. Try {', '.join(remedies)}; if it breaks at "
        "the first step, look for NaN in the model."
    )
