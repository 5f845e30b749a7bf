"""What a report says of an error: a headline, and the student's own line."""

import re

from vitedu.checks.errors import DeviceMismatch
from vitedu.checks.observation import Observation

# what torch's message says -> the headline of the report
_PATTERNS = {
    r"index -?\d+ is out of bounds for dimension (\d+) with size (\d+)": (
        "an index runs past axis {}, which has size {}"
    ),
    r"size of tensor a \((\d+)\) must match .* tensor b \((\d+)\) at": (
        "sizes {} and {} meet on one axis"
    ),
    r"shapes cannot be multiplied \((\d+x\d+) and (\d+x\d+)\)": (
        "a matrix {} is multiplied by a matrix {}"
    ),
    r"shape '\[(.*)\]' is invalid for input of size (\d+)": (
        "a shape ({}) is asked for, and there are {} numbers"
    ),
}


def error_headline(seen: Observation) -> str:
    """Return the headline of a timeout or of a common error of torch, or "" for any other error."""
    if seen.error is None:
        return ""
    if seen.error.kind == "TimeUp":
        return "the call does not come to an end"
    matches = ((re.search(text, seen.error.message), words) for text, words in _PATTERNS.items())
    return next((words.format(*match.groups()) for match, words in matches if match), "")


def error_text(seen: Observation) -> str:
    """Describe an exception with the student's line, if it has one."""
    error = seen.error
    if error is None:
        return ""
    where = ""
    if error.location and error.location[1]:
        line = error.location[1] if len(error.location[1]) <= 80 else error.location[1][:79] + "…"
        where = f"   (line {error.location[0]}: {line})"
    if error.kind == "TimeUp":
        limit = seen.seconds or 10.0
        return f"no result within {limit:g} s; look for a loop that never ends{where}"
    if error.device_mismatch is DeviceMismatch.GENERATOR:
        return (
            "draws on another device than the generator's; draw with device=generator.device, "
            "then .to(...)"
        )
    if error.device_mismatch is DeviceMismatch.TENSORS:
        return "tensors on two devices; make new tensors with device=x.device of an input x"
    message = f": {error.message}" if error.message else ""
    return f"{error.kind}{message}{where}"
