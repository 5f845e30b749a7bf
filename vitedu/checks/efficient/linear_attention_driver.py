"""The driver of ``linear_attention``: the work of a call, counted."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from vitedu.checks.observing.case import Case, build_args
from vitedu.checks.observing.drivers import call_answer, driver
from vitedu.checks.observing.observation import Observation, store_outputs


class CountedTensor(torch.Tensor):
    """A tensor without memory of its own, so that only its counter can work with its numbers."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore

    def __repr__(self):
        return f"tensor of shape {tuple(self.shape)}"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("this call is hidden from whoever counts its work")


class _WorkCounter(TorchDispatchMode):
    """Add up the work of all kernels.

    Every result of a counted tensor is counted too, in other threads as well. A matrix product
    counts its multiplications, any other kernel the elements of the largest tensor that takes part.
    """

    _should_skip_dynamo = classmethod(lambda cls: False)  # otherwise torch imports its compiler

    def __init__(self):
        super().__init__()
        self.total = 0
        # id of a counted tensor -> (the counted tensor, the tensor with its numbers)
        self.__pairs: dict[int, tuple] = {}

    def wrap(self, x):
        """Return a counted tensor in place of an ordinary one."""
        if type(x) is not torch.Tensor:
            return x
        counted = torch.Tensor._make_wrapper_subclass(
            CountedTensor, x.shape, x.stride(), dtype=x.dtype, device=x.device
        )
        self.__pairs[id(counted)] = counted, x
        return counted

    def unwrap(self, x):
        """Return the tensor with the numbers of a counted one."""
        return self.__pairs[id(x)][1] if isinstance(x, CountedTensor) else x

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        inputs = args, kwargs or {}
        plain_args, plain_kwargs = tree_map(self.unwrap, inputs)
        result = func(*plain_args, **plain_kwargs)
        factors = [x for x in plain_args if isinstance(x, torch.Tensor)][-2:]
        tensors = [x for x in tree_leaves((plain_args, result)) if isinstance(x, torch.Tensor)]
        if func.overloadpacket in _PRODUCTS:
            self.total += result.numel() * factors[0].shape[-1]
        elif func.overloadpacket is torch.ops.aten._local_scalar_dense:
            self.total += _READ_COST
        elif not func.is_view:  # a view is no work
            self.total += max((x.numel() for x in tensors), default=0)
        out = inputs[1].get("out", args[0] if func._schema.name.endswith("_") else None)
        if out is None:
            return tree_map(self.wrap, result)
        if type(out) is torch.Tensor:
            raise RuntimeError("its result is written into a tensor that was there before the call")
        return out


_PRODUCTS = frozenset(
    getattr(torch.ops.aten, name) for name in "mm bmm addmm baddbmm mv addmv".split()
)

_READ_COST = 100  # the work of reading one number: an answer may test a few, not read them all


@driver
def growth(answer: Any, case: Case, seen: Observation) -> None:
    """Compare the work of a call with that of a call with four times the tokens (axis -2).

    The work must not grow faster than the tokens, nor reach that of two products of queries by
    keys.
    """
    work = []
    for times in (1, 4):
        args = {
            name: torch.cat([value] * times, dim=-2) for name, value in build_args(case).items()
        }
        with _WorkCounter() as counter:
            wrapped = {name: counter.wrap(value) for name, value in args.items()}
            result = tree_map(counter.unwrap, call_answer(answer, case, wrapped))
        work.append(counter.total)
    store_outputs(seen, case, result)
    q, k, v = args.values()
    most = q[..., 0].numel() * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    # an answer that returns a stored result does no work at first; another probe reports that
    is_about = work[1] < (min(6 * work[0], most) if work[0] else most)
    words = f"{'about' if is_about else 'far more than'} four times the work"
    words = words if work[1] else "no work at all"
    seen.facts["four times the tokens, about four times the work"] = words
