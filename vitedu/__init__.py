"""vitedu: learn how a Vision Transformer works by writing every part of it.

``from vitedu import check, challenge, hint, solution, progress, reset`` is all that a notebook
needs; the rest is imported from its module. Importing the package alone is fast: the first
name that is imported from it loads torch.

On Linux torch's threads wait for each other in a loop that keeps the core busy. Where another
program wants the core too, they wait for a thread that is not running, and training takes ten times
as long. Importing this package before torch makes that wait short. A setting of the user's own
stays.
"""

import os
import sys

if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys():
    # rounds of that loop; OpenMP reads the number once, when torch is loaded
    os.environ["GOMP_SPINCOUNT"] = "1000"
if "IPython" in sys.modules:  # a notebook explains missing names, and finds the student's my_vit.py
    from vitedu.course.run_above import watch
    from vitedu.exporting.importing import install

    watch()
    install()

# modules that notebooks of 0.2 import and that have moved are found under their old names
__path__.append(os.path.join(__path__[0], "commands", "old_names"))
__version__ = "0.3.0.dev0"
__all__ = ["challenge", "check", "export_model", "hint", "progress", "reset", "solution", "Report"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module 'vitedu' has no attribute {name!r}")
    import importlib

    module = importlib.import_module("vitedu.checks.api")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
