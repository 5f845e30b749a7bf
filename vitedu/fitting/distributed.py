"""Several devices, one process each, learning from one batch: what ``torchrun`` started.

Role: who this process is, its share of a batch, sums over all. Not here: the loop (``loop``).

Several processes give the result of one, rounding aside. Each draws the same order and augments the
whole batch with the same generator, then learns from every n-th image of it.
DistributedDataParallel forms the mean gradient over processes; the loss is weighted so that this is
the gradient of the whole batch, even where shares differ in size. There are two exceptions: batch
norm sees the images of its own process only, and dropout draws for each process apart.

Reference: Li et al. 2020, "PyTorch Distributed" (arXiv 2006.15704).
"""

import atexit
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import distributed, nn

from vitedu.hardware import pick_device


@dataclass(frozen=True)
class Processes:
    """The processes that train one model. ``Processes()`` is one alone."""

    rank: int = 0  # which of them this is; 0 prints and writes
    count: int = 1

    def share(self, batch: torch.Tensor) -> torch.Tensor:
        """Return what this process learns from: every ``count``-th row, from its rank on.

        Where a short batch has none left it is the first row, which then must weigh nothing: a
        process that skipped the step would leave the others waiting.

        Example:
            >>> [Processes(rank, 2).share(torch.arange(5)).tolist() for rank in (0, 1)]
            [[0, 2, 4], [1, 3]]
        """
        if self.count == 1:
            return batch
        return batch[self.rank :: self.count] if self.rank < len(batch) else batch[:1]

    def share_size(self, batch_size: int) -> int:
        """Return how many rows of a batch count for this process, 0 where there are too few.

        Example:
            >>> [Processes(rank, 4).share_size(6) for rank in range(4)]
            [2, 2, 1, 1]
        """
        return -(-(batch_size - self.rank) // self.count) if batch_size > self.rank else 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Return what to call for a model, so that gradients are the mean over processes.

        All of them get the weights and buffers of rank 0.
        """
        if self.count == 1:
            return model
        # said of a class token, whose gradient is one row: a matter of a hundred numbers
        warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
        return nn.parallel.DistributedDataParallel(model)

    def sum_over_processes(self, *tensors: torch.Tensor) -> None:
        """Replace each tensor by its sum over all processes."""
        if self.count > 1:
            for tensor in tensors:
                distributed.all_reduce(tensor)

    def check_agreement(self, number: int, meaning: str) -> None:
        """Raise a ValueError if processes see different numbers, such as on disks of their own."""
        is_nccl = self.count > 1 and distributed.get_backend() == "nccl"
        total = torch.tensor([float(number)], device="cuda" if is_nccl else "cpu")
        self.sum_over_processes(total)
        if total.item() != number * self.count:
            raise ValueError(
                f"the processes do not see the same {meaning} (here {number}, "
                f"mean {total.item() / self.count:g}); do they share a disk?"
            )

    @contextmanager
    def rank_zero_first(self) -> Iterator[None]:
        """Let rank 0 go through a block first, so that it alone downloads and decodes."""
        if self.count > 1 and self.rank:
            distributed.barrier()
        try:
            yield
        finally:  # after an error too: the others meet it themselves and end in the same way
            if self.count > 1 and not self.rank:
                distributed.barrier()


def rank_and_count() -> tuple[int, int]:
    """Read from the environment which process this is, and of how many; (0, 1) without torchrun."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def own_device(name: str) -> torch.device:
    """Choose the device of this process: ``name``, and under torchrun its own one of that kind.

    Raises:
        ValueError: there are fewer devices than processes, or one device is named for all of them.
    """
    device = pick_device() if name == "auto" else torch.device(name)
    if rank_and_count()[1] == 1:
        return device
    if device.type not in ("cpu", "cuda") or device.index is not None:
        raise ValueError(
            "several processes take one device each: device must be 'cpu' or 'cuda' (got "
            f"{device})."
        )
    if device.type == "cpu":
        return device
    index, num_devices = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
    if index >= num_devices:
        raise ValueError(
            f"each process needs a device of its own (got {num_devices} CUDA devices and at least "
            f"{index + 1} processes); start torchrun with --nproc_per_node={num_devices}."
        )
    return torch.device("cuda", index)


def join_processes(device: torch.device) -> Processes:
    """Join the other processes that torchrun started; without torchrun nothing happens.

    The first call makes the connections. They last until Python ends, for torchrun's meeting point
    serves one meeting only: a second one would wait for ever.
    """
    rank, count = rank_and_count()
    if count > 1 and not distributed.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(device)
            distributed.init_process_group("nccl", device_id=device)
        else:
            distributed.init_process_group("gloo")
        atexit.register(distributed.destroy_process_group)
    return Processes(rank, count)
