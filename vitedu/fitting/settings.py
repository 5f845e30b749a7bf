"""Words such as ``cutmix_share=0.5``, read as fields of a dataclass: known names, right types.

Role: ``read_settings``. Not here: what the fields mean. Nothing is evaluated.
"""

import difflib
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_origin, get_type_hints


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
        try:
            values[kind][name] = read_value(text.strip(), hint)
        except ValueError:
            kind_name = describe_type(hint)
            raise ValueError(f"{name} must be {kind_name} (got {text.strip()!r}).") from None
    return list(values.values())


def read_value(text: str, hint):
    """Read text as ``bool``, ``int``, ``float``, ``str``, a union with None, or a tuple of such."""
    if get_origin(hint) is tuple:
        parts, inner = text.strip("()").split(","), get_args(hint)
        if len(parts) != len(inner):
            raise ValueError
        return tuple(
            read_value(part.strip(), kind) for part, kind in zip(parts, inner, strict=True)
        )
    if get_args(hint):  # such as int | None
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return None if text.lower() == "none" else read_value(text, kinds[0])
    if hint is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    return hint(text)


def describe_type(hint) -> str:
    """Name a type as a reader of the command line does."""
    if get_origin(hint) is tuple:
        return f"{len(get_args(hint))} numbers with a comma between them"
    if get_args(hint):
        return " or ".join("none" if k is type(None) else describe_type(k) for k in get_args(hint))
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(hint, "a word")
