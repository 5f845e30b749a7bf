"""Show what a call has to say: in a notebook as HTML, in a terminal as printed text."""

from vitedu.course.run_above import find_shell


class PrintedText(str):
    """A text that was already printed, so a notebook must not show it again."""

    def _ipython_display_(self):
        pass


def print_text(text: str) -> PrintedText:
    """Print a text and return it, to be shown once."""
    print(text)
    return PrintedText(text)


def show(text: str, html: str) -> None:
    """Show the HTML in a notebook; print the text elsewhere."""
    if find_shell() is None:
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": html}, raw=True)
