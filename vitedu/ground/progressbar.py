"""One line that says how far long work has come: in a notebook, in a terminal, in a log file.

Role: show a fraction, a text and the time left. Not here: what the work is. Nothing is imported
beyond the standard library, except IPython when a notebook has already loaded it.
"""

import sys
import time


class ProgressBar:
    """Show one line that replaces itself on standard error; in a log, one line every half minute.

    A notebook draws it below the cell.

    Args:
        total: the number of steps.
        start: the steps that were done before.
    """

    def __init__(self, total: int, *, start: int = 0):
        self.total, self.start, self.stream = total, start, sys.stderr
        self.display = notebook_display()
        self.is_live = self.display is not None or self.stream.isatty()
        self.interval = 0.2 if self.is_live else 30.0  # seconds between two lines
        self.started = self.last_update = time.monotonic()
        self.width = 0  # of the line that stands in the terminal

    def is_due(self) -> bool:
        """Tell whether ``update`` would show something, so that a caller need not make the text."""
        return time.monotonic() - self.last_update >= self.interval

    def update(self, done: int, text: str) -> None:
        """Show that ``done`` of ``total`` steps are behind us, if the last line is old enough."""
        if self.is_due():
            self.last_update = time.monotonic()
            seconds_left = (self.last_update - self.started) / max(done - self.start, 1)
            seconds_left *= self.total - done
            filled = 20 * done // self.total
            bar = "#" * filled + "-" * (20 - filled)
            self._show(f"[{bar}] {text}, {duration(seconds_left)} left")

    def note(self, line: str) -> None:
        """Leave a line for good in a terminal or a log; a notebook keeps only the bar."""
        if self.display is None:
            self._clear()
            self.stream.write(f"{line}\n")
            self.stream.flush()

    def close(self, text: str = "") -> None:
        """Clear the line; a notebook keeps ``text`` in its place."""
        if self.display is not None:
            self._show(text)
        else:
            self._clear()

    def _clear(self) -> None:
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0

    def _show(self, line: str) -> None:
        if self.display is not None:
            self.display({"text/plain": line})
        elif self.is_live:
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()


def notebook_display():
    """Return a function that draws in place below the running cell, or None outside a notebook.

    It takes forms of outputs, as many at each call.
    """
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython
    from IPython.display import display

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    handles = []

    def show(*bundles: dict) -> None:
        for handle, bundle in zip(handles, bundles, strict=False):
            handle.update(bundle, raw=True)
        for bundle in bundles[len(handles) :]:
            handles.append(display(bundle, raw=True, display_id=True))

    return show


def duration(seconds: float) -> str:
    """Write seconds as a person reads them.

    Example:
        >>> [duration(seconds) for seconds in (7.4, 90, 7_260)]
        ['7 s', '1 min 30 s', '2 h 01 min']
    """
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"
