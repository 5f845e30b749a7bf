"""Tables of long texts: what stands below a heading, as it is, without quotes and commas."""

import re


def sections(text: str) -> dict[str, str]:
    """Read the texts below headings: lines that begin with two equals signs.

    Example:
        >>> sections("== one\\ntext\\n\\nmore\\n\\n== two\\nx\\n")
        {'one': 'text\\n\\nmore', 'two': 'x'}
    """
    _, *parts = re.split(r"(?m)^== (.+)\n", text)
    return {name: body.strip("\n") for name, body in zip(parts[::2], parts[1::2], strict=True)}
