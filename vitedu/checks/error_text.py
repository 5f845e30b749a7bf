"""What a report says of an error, with the student's own line."""

from vitedu.checks.errors import DeviceMismatch
from vitedu.checks.observation import Observation


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
