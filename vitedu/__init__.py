"""vitedu: learn how a Vision Transformer works by writing every part of it.

``from vitedu import check, hint, solution, progress, reset`` is all that a notebook needs; the rest
is imported from its module. Importing the package alone is fast: torch is loaded by the first check.
"""

__version__ = "0.1.0"
__all__ = ["check", "hint", "progress", "reset", "solution", "Report"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module 'vitedu' has no attribute {name!r}")
    import importlib

    module = importlib.import_module("vitedu.checks.api")
    return getattr(module, name)


def __dir__():
    return sorted([*globals(), *__all__])
