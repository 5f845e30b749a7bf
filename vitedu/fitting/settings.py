"""Words such as ``cutmix_share=0.5``, read as fields of a dataclass: known names, right types.

Role: ``read_settings``. Not here: what the fields mean. Nothing is evaluated.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, get_type_hints


def read_pair(text: str) -> tuple[float, float]:
    """Read two numbers with a comma between them."""
    first, second = text.strip("()").split(",")
    return float(first), float(second)


# the type of a field -> what it is called, how it is read
TYPES: dict[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    int: ("a whole number", int),
    int | None: (
        "a whole number or none",
        lambda text: None if text.lower() == "none" else int(text),
    ),
    float: ("a number", float),
    str: ("a word", str),
    tuple[float, float]: ("2 numbers with a comma between them", read_pair),
}


def read_settings(
    texts: Sequence[str], *kinds: type, reserved: dict[str, str] | None = None
) -> list[dict]:
    """Sort settings by the dataclass that has the field, and read each value as the field's type.

    Args:
        texts: each ``name=value``; true, false and none as such, a tuple as ``0.9,0.95``.
        *kinds: dataclasses without a common field name.
        reserved: fields that cannot be set here, and what sets them.

    Returns:
        One dict of values for each dataclass, in their order.

    Raises:
        ValueError: a setting without "=", an unknown name (the message has the nearest and all
            others), a name given twice, or a value that is not of the field's type.

    Example:
        >>> from vitedu.fitting.config import TrainConfig
        >>> read_settings(["betas=0.9,0.99", "crop_padding=none"], TrainConfig)
        [{'betas': (0.9, 0.99), 'crop_padding': None}]
    """
    types: dict[str, tuple[type, Any]] = {}
    reserved = reserved or {}
    for kind in kinds:
        hints = get_type_hints(kind)
        types |= {f.name: (kind, hints[f.name]) for f in fields(kind) if f.name not in reserved}
    values: dict[type, dict] = {kind: {} for kind in kinds}
    for setting in texts:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise ValueError(f"a setting is written name=value (got {setting!r}).")
        if name in reserved:
            raise ValueError(f"--set does not set {name}: {reserved[name]}.")
        if name not in types:
            nearest = difflib.get_close_matches(name, types, n=1)
            guess = f" Did you mean {nearest[0]}?" if nearest else ""
            raise ValueError(f"no setting is named {name!r}.{guess} There are {', '.join(types)}.")
        kind, hint = types[name]
        if name in values[kind]:
            raise ValueError(f"{name} is set twice.")
        what, read = TYPES[hint]
        try:
            values[kind][name] = read(text.strip())
        except (KeyError, ValueError):
            raise ValueError(f"{name} must be {what} (got {text.strip()!r}).") from None
    return list(values.values())
