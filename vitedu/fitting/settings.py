"""Words such as ``cutmix_share=0.5``, read as fields of a dataclass: known names, right types.

Role: ``read_settings``. Not here: what the fields mean. Nothing is evaluated.
"""

import difflib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints


def read_settings(words: Sequence[str], *kinds: type, taken: Sequence[str] = ()) -> list[dict]:
    """Sort settings by the dataclass that has the field, and read each value as the field's type.

    Args:
        words: each ``name=value``; true, false and none as such, a tuple as ``0.9,0.95``.
        *kinds: dataclasses without a common field name.
        taken: fields that cannot be set here.

    Returns:
        One dict of values for each dataclass, in their order.

    Raises:
        ValueError: a word without "=", an unknown name (the message has the nearest and all
            others), a name given twice, or a value that is not of the field's type.

    Example:
        >>> from vitedu.fitting.config import TrainConfig
        >>> read_settings(["betas=0.9,0.99", "crop_padding=none"], TrainConfig)
        [{'betas': (0.9, 0.99), 'crop_padding': None}]
    """
    types: dict[str, tuple[type, Any]] = {}
    for kind in kinds:
        hints = get_type_hints(kind)
        types |= {f.name: (kind, hints[f.name]) for f in fields(kind) if f.name not in taken}
    found: dict[type, dict] = {kind: {} for kind in kinds}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise ValueError(f"a setting is written name=value (got {word!r}).")
        if name not in types:
            nearest = difflib.get_close_matches(name, types, n=1)
            guess = f" Did you mean {nearest[0]}?" if nearest else ""
            raise ValueError(f"no setting is named {name!r}.{guess} There are {', '.join(types)}.")
        kind, wanted = types[name]
        if name in found[kind]:
            raise ValueError(f"{name} is set twice.")
        try:
            found[kind][name] = read_value(text.strip(), wanted)
        except ValueError:
            raise ValueError(f"{name} must be {describe(wanted)} (got {text.strip()!r}).") from None
    return list(found.values())


def read_value(text: str, wanted):
    """Read text as ``bool``, ``int``, ``float``, ``str``, a union with None, or a tuple of such."""
    if get_origin(wanted) is tuple:
        parts, inner = text.strip("()").split(","), get_args(wanted)
        if len(parts) != len(inner):
            raise ValueError
        return tuple(
            read_value(part.strip(), kind) for part, kind in zip(parts, inner, strict=True)
        )
    if get_args(wanted):  # such as int | None
        kinds = [kind for kind in get_args(wanted) if kind is not type(None)]
        return None if text.lower() == "none" else read_value(text, kinds[0])
    if wanted is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    return wanted(text)


def describe(wanted) -> str:
    """Name a type as a reader of the command line does."""
    if get_origin(wanted) is tuple:
        return f"{len(get_args(wanted))} numbers with a comma between them"
    if get_args(wanted):
        return " or ".join("none" if k is type(None) else describe(k) for k in get_args(wanted))
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(wanted, "a word")
