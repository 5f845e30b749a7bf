"""Show what a call has to say: in a notebook as HTML, in a terminal as printed text."""

from typing import Any

from vitedu.course.run_above import find_shell


class PrintedText(str):
    """A text that was already printed, so a notebook must not show it again."""

    def _ipython_display_(self):
        pass


class TextAndHtml:
    """A text that a notebook shows as HTML and a terminal as plain text."""

    def __init__(self, text: str, html: str):
        self.text, self.html = text, html

    def __str__(self):
        return self.text

    def display(self) -> None:
        """Show it in a notebook."""
        from IPython.display import display

        display({"text/plain": self.text, "text/html": self.html}, raw=True)


def print_text(text: str) -> PrintedText:
    """Print a text and return it, to be shown once."""
    print(text)
    return PrintedText(text)


def show(report: Any) -> None:
    """Display a report in a notebook; print it elsewhere."""
    if find_shell() is not None:
        report.display()
    else:
        print(report)
