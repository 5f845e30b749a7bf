"""Frames: the format in which plain data and tensors are exchanged with an untrusted process.

Role: ``pack`` and ``unpack``; ``messages`` says what is inside a frame. It has 8 bytes (little
endian) with the length of the rest, 4 bytes with the length of a JSON text, the text, and the bytes
of its tensors one after the other. In the text, a dict with the only key ``TENSOR`` stands for the
next of them, and has its dtype and shape. There is no pickle, no ``torch.load``, and nothing is
executed. Whatever the bytes are, ``unpack`` returns data or raises ``WireError``. Imports the
standard library, numpy and torch only.
"""

import json
import math
from collections.abc import Callable
from typing import Any

import torch

TENSOR = "<tensor>"
PREFIX = 8  # bytes with the length of the rest of a frame
MAX_FRAME = 8 * 2**20  # bytes; a case and its observation have below 1 MB
MAX_HEADER = 2**20  # bytes of JSON that a worker may send
MAX_ARRAY = 2**21  # bytes of one tensor; right answers return 54 kB, named mistakes 1.4 MB
MAX_TENSORS = 512
MAX_DEPTH = 24  # nested values
MAX_ITEMS = 100_000  # values in one frame
MAX_DIGITS = 300  # of an integer, so that it can be converted to a float
LARGEST = 10**MAX_DIGITS
MAX_AXES = 16

# other dtypes lack torch operations that the judges use
DTYPES = {
    name: getattr(torch, name)
    for name in (
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    ).split()
}
NAME_OF = {dtype: name for name, dtype in DTYPES.items()}


class WireError(ValueError):
    """Bytes or data that do not follow the format."""


def pack(data: Any) -> bytes:
    """Make a frame, with its prefix.

    Args:
        data: None, booleans, finite numbers, strings, dense tensors on the CPU, lists and dicts;
            for anything else it raises ``WireError``.
    """
    chunks: list[bytes] = []

    def write_tensor(tensor: Any) -> dict:
        if not isinstance(tensor, torch.Tensor) or tensor.dtype not in NAME_OF:
            raise TypeError(f"a {getattr(tensor, 'dtype', type(tensor))}")
        flat = tensor.detach().contiguous().reshape(-1)
        chunks.append(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
        return {TENSOR: [NAME_OF[tensor.dtype], list(tensor.shape)]}

    try:
        text = json.dumps(data, allow_nan=False, default=write_tensor).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"no frame carries this: {error}") from None
    body = b"".join([len(text).to_bytes(4, "little"), text, *chunks])
    if len(body) > MAX_FRAME:
        raise WireError(f"a frame holds at most {MAX_FRAME} bytes (got {len(body)}).")
    return len(body).to_bytes(PREFIX, "little") + body


def length_of(prefix: bytes) -> int:
    """Read the length of the rest of a frame from its first 8 bytes."""
    length = int.from_bytes(prefix, "little")
    if len(prefix) != PREFIX or not 4 <= length <= MAX_FRAME:
        raise WireError(f"a frame has 4 to {MAX_FRAME} bytes (got {length}).")
    return length


def unpack(frame: bytes, *, is_trusted: bool = False) -> Any:
    """Read JSON data with finite numbers, and tensors with their own memory.

    Args:
        frame: all of its bytes, with its prefix.
        is_trusted: whether the text and the number of tensors may have any size.

    Raises:
        WireError: anything is wrong with the frame.
    """
    if length_of(frame[:PREFIX]) != len(frame) - PREFIX:
        raise WireError(f"a frame of {len(frame)} bytes announces another length.")
    size, start = int.from_bytes(frame[PREFIX : PREFIX + 4], "little"), PREFIX + 4
    if start + size > len(frame) or (size > MAX_HEADER and not is_trusted):
        raise WireError(f"a header of {size} bytes does not fit (at most {MAX_HEADER}).")
    end, count = start + size, 0

    def read_dict(item: dict) -> Any:
        nonlocal end, count
        if item.keys() != {TENSOR}:
            return item
        count += 1
        if count > MAX_TENSORS and not is_trusted:
            raise WireError(f"a frame lists at most {MAX_TENSORS} tensors.")
        tensor, end = _read_tensor(item[TENSOR], frame, end)
        return tensor

    data = _parse(frame[start : start + size], read_dict)
    if end != len(frame):
        raise WireError(f"{len(frame) - end} bytes belong to no tensor.")
    return data


def _read_tensor(item: Any, frame: bytes, start: int) -> tuple[torch.Tensor, int]:
    """Rebuild one tensor from its bytes; return it and the position of the next one."""
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[1], list):
        raise WireError("a tensor is listed with dtype and shape.")
    dtype, shape = DTYPES.get(item[0]) if isinstance(item[0], str) else None, item[1]
    if dtype is None:
        raise WireError(f"no such dtype: {str(item[0])[:40]!r}.")
    if len(shape) > MAX_AXES or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise WireError(f"a shape has at most {MAX_AXES} sizes below 2**31.")
    if math.prod(n for n in shape if n) >= 2**48:  # an empty tensor may still have large sizes
        raise WireError(f"no tensor has the shape {shape}.")
    length = math.prod(shape) * dtype.itemsize
    if length > len(frame) - start:
        raise WireError(f"a tensor of {length} bytes has {len(frame) - start} left.")
    if not length:
        return torch.zeros(shape, dtype=dtype), start
    chunk = bytearray(memoryview(frame)[start : start + length])  # a slice of bytes copies twice
    if dtype is torch.bool and max(chunk) > 1:
        raise WireError("a boolean is 0 or 1.")
    return torch.frombuffer(chunk, dtype=dtype).reshape(shape), start + length


def _parse(text: bytes, read_dict: Callable[[dict], Any]) -> Any:
    """Parse JSON that may be hostile: limited numbers, depth and amount."""
    try:
        data = json.loads(text.decode("utf-8"), object_hook=read_dict)
    except (ValueError, RecursionError) as error:  # JSONDecodeError and UnicodeDecodeError too
        raise WireError(f"the header cannot be read: {error}"[:200]) from None
    layer, count = [data], 0
    for _ in range(MAX_DEPTH):
        count += len(layer)
        if count > MAX_ITEMS:
            raise WireError(f"a frame holds at most {MAX_ITEMS} values.")
        floats = [value for value in layer if isinstance(value, float)]
        integers = [value for value in layer if type(value) is int]
        if not all(map(math.isfinite, floats)) or any(abs(n) >= LARGEST for n in integers):
            raise WireError(f"a number is finite, and an integer has at most {MAX_DIGITS} digits.")
        inner = [value for value in layer if isinstance(value, list | dict)]
        layer = [x for v in inner for x in (v.values() if isinstance(v, dict) else v)]
        if not layer:
            return data
    raise WireError(f"values may be nested {MAX_DEPTH} deep.")


def clean(text: Any, limit: int) -> str:
    """Cut a text to ``limit`` characters and replace those that are not printable."""
    if not isinstance(text, str):
        raise WireError(f"a text was expected (got {type(text).__name__}).")
    text = str.__str__(text)[:limit]  # a subclass of str may have other methods
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
