"""What an answer's code can try: the table of the field's graders, and reaching for what is not there."""

from attacks import RIGHT, VALUE, Attack, called, loaded

TABLE = {
    # --- honest, and heavy -------------------------------------------------------------------
    "warnings": Attack("import warnings\n" + called("warnings.warn('careful')", VALUE), "full"),
    "prints": Attack(called("print('shape', x.shape)", VALUE), "full"),
    "four_gb_once_and_caught": Attack(
        loaded(
            "try:\n    return bytearray(4 * 10**9)\nexcept MemoryError:\n    return None", VALUE
        ),
        "full",
    ),
    "four_gb_at_once": Attack(called("torch.zeros(10**9)"), ("memory",)),
    "four_gb_in_pieces": Attack(
        called("kept = [torch.empty(10**7) for _ in range(400)]"), ("memory",)
    ),
    # --- does not end ------------------------------------------------------------------------
    "endless_loop": Attack(called("while True:\n    pass"), "nothing"),
    "loop_that_swallows_interrupts": Attack(
        called(
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
        ),
        ("timeout",),
    ),
    "loop_deaf_to_signals": Attack(
        called(
            "import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True:\n    pass"
        ),
        ("timeout",),
    ),
    "endless_error_message": Attack(
        called(
            "class Endless(Exception):\n    def __str__(self):\n        while True:\n            pass\nraise Endless"
        ),
        ("timeout",),
    ),
    "hangs_at_import": Attack(
        called("waited", "x * 0"),
        ("timeout", "import"),
        before=(
            "import time\n\ndef rest():\n    time.sleep(3600)\n    return 1\n\nwaited = rest()",
        ),
    ),
    # --- ends the process --------------------------------------------------------------------
    "exits_hard": Attack(called("import os\nos._exit(0)"), ("crashed",)),
    "exits_hard_at_load": Attack(loaded("import os\nos._exit(0)"), ("crashed",)),
    "exits": Attack(called("import sys\nsys.exit()"), "nothing"),
    "exits_at_top_level": Attack(called("pass") + "raise SystemExit\n", "zeros"),
    "asks_the_shell_to_exit": Attack(called("pass") + "get_ipython().ask_exit()\n", "zeros"),
    "keyboard_interrupt": Attack(called("raise KeyboardInterrupt"), "nothing"),
    "null_pointer": Attack(called("import ctypes\nctypes.string_at(0)"), ("crashed",)),
    "abort": Attack(called("import os\nos.abort()"), ("crashed",)),
    "deep_recursion": Attack(
        loaded("import sys\nsys.setrecursionlimit(10**9)\ndeep = lambda: deep()\nreturn deep()"),
        ("crashed", "memory", "timeout", "protocol"),
    ),
    "collects_nothing": Attack(called("import atexit\natexit.register(print, 'late')"), "zeros"),
    # --- patches -----------------------------------------------------------------------------
    "patches_comparisons": Attack(
        loaded(
            "import numpy.testing\ntorch.allclose = torch.equal = torch.isclose = lambda *a, **k: True\n"
            "torch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True\n"
            "numpy.testing.assert_allclose = numpy.testing.assert_array_equal = lambda *a, **k: None"
        ),
        "zeros",
    ),
    "patches_assertion_error": Attack(
        loaded("import builtins\nbuiltins.AssertionError = type('Fine', (), {})"), "zeros"
    ),
    "patches_import": Attack(
        loaded(
            "import builtins\nold = builtins.__import__\nbuiltins.__import__ = lambda name, *a: old('math' if 'judg' in name else name, *a)"
        ),
        "zeros",
    ),
    "replaces_checkers": Attack(
        loaded(
            "import sys, types\n"
            "for name in ('vitedu.checks.attention', 'vitedu.checks.engine', 'vitedu.checks.judging', 'vitedu.grading.judge'):\n"
            "    module = sys.modules[name] = types.ModuleType(name)\n"
            "    module.compare = module.conclude = module.grade_answer = lambda *a, **k: None"
        ),
        "zeros",
    ),
    "empties_modules": Attack(
        loaded("import sys\nsys.modules.clear()"), ("protocol", "crashed", "grader")
    ),
    "traces": Attack(
        called(
            "import sys\nsys.settrace(lambda frame, event, arg: frame.f_locals.update(error=None, passed=True))"
        ),
        "zeros",
    ),
    "patches_module_call": Attack(
        loaded(
            "nn.Module.__call__ = torch.Tensor.detach = torch.Tensor.clone = lambda *a, **k: a[-1]"
        ),
        ("zeros", "nothing"),
    ),
    # --- types -------------------------------------------------------------------------------
    "lying_subclass": Attack(
        "class Yes(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return True if 'close' in func.__name__ or 'equal' in func.__name__ else super().__torch_function__(func, types, args, kwargs or {})\n"
        "def softmax(x, dim=-1):\n    return (x * 0).as_subclass(Yes)\n",
        "nothing",
    ),
    "equal_to_everything": Attack(
        "class Same:\n    shape = dtype = device = property(lambda self: Same())\n"
        "    def __eq__(self, other):\n        return True\n    def __getattr__(self, name):\n        return self\n"
        "    def __call__(self, *a, **k):\n        return self\n    __hash__ = None\n"
        "def softmax(x, dim=-1):\n    return Same()\n",
        "nothing",
    ),
    "pickle_bomb": Attack(
        "class Bomb:\n    def __reduce__(self):\n        import os\n        return os.system, ('touch ' + {OUT!r} + '/pickled',)\n"
        "def softmax(x, dim=-1):\n    return Bomb()\n",
        "nothing",
    ),
    "nan": Attack(called("pass", "x * float('nan')"), "zeros"),
    "infinite": Attack(called("pass", "x.abs() / 0"), "zeros"),
    "other_dtype": Attack(called("pass", f"({VALUE}).to(torch.float16)"), "zeros"),
    "booleans": Attack(called("pass", "x > 0"), "zeros"),
    "complex": Attack(called("pass", f"({VALUE}).to(torch.complex64)"), "zeros"),
    "expanded_to_terabytes": Attack(called("pass", "torch.zeros(1).expand(10**12)"), "nothing"),
    "sparse": Attack(called("pass", f"({VALUE}).to_sparse()"), "nothing"),
    "quantised": Attack(
        called("pass", "torch.quantize_per_tensor(x.detach().float(), 0.1, 0, torch.qint8)"),
        "nothing",
    ),
    "on_no_device": Attack(called("pass", "x.to('meta')"), ("zeros", "nothing")),
    "nested": Attack(called("pass", "torch.nested.nested_tensor([x.flatten()])"), "nothing"),
    "generator": Attack("def softmax(x, dim=-1):\n    yield x\n", "nothing"),
    "edits_its_input": Attack(
        called("x -= x.amax(dim, True)", "x.exp() / x.exp().sum(dim, True)"),
        ("zeros", "nothing", "less"),
    ),
    # --- looking for expected values ---------------------------------------------------------
    "steals_from_frames": Attack(
        called(
            "import sys\nframe, found = sys._getframe(), []\nwhile frame:\n"
            "    for name, value in frame.f_locals.items():\n"
            "        values = [v for v in (value, *vars(value).values()) if isinstance(v, dict)] if hasattr(value, '__dict__') else []\n"
            "        found += [t for v in values for t in v.values() if isinstance(t, torch.Tensor) and t.shape == x.shape and t is not x and not torch.equal(t, x)]\n"
            "    frame = frame.f_back\n",
            "found[0] * 1 if found else x * 0",
        ),
        ("zeros", "less"),
    ),
    "searches_memory": Attack(
        called(
            "import gc\nfor t in gc.get_objects():\n"
            "    if type(t) is torch.Tensor and t is not x and t.shape == x.shape and t.is_floating_point():\n"
            "        if torch.allclose(t.sum(dim), torch.ones((), dtype=t.dtype)):\n            return t.clone()"
        ),
        "zeros",
    ),
    "searches_for_secrets": Attack(
        called(
            "import gc\nwords = ('expected', 'misconceptions', 'tolerance', 'bank', 'reference')\n"
            "names = [k for d in gc.get_objects() if type(d) is dict for k in d if isinstance(k, str) and k in words]\n"
            "from vitedu.checks import probing\nassert not hasattr(probing, 'compare')"
        ),
        "zeros",
    ),
    "imports_the_reference": Attack(
        called("from vitedu.attention import softmax as theirs", "theirs(x, dim)"),
        "nothing",
        flags=("dangerous",),
    ),
    "imports_a_later_reference": Attack(
        called("from vitedu.attention import scaled_dot_product_attention", "x"), "nothing"
    ),
    "asks_for_the_solution": Attack(
        "from vitedu import solution\n\ntext = str(solution('softmax', really=True))\n\n"
        "def softmax(x, dim=-1, text=text):\n    exec(text[text.find('def'):] or 'softmax = None', globals())\n    return globals()['softmax'](x, dim)\n",
        "nothing",
    ),
    "table_keyed_on_inputs": Attack(
        "known = {}\nfor seed in range(300):\n    g = torch.Generator().manual_seed(seed)\n    y = torch.randn(4, 6, generator=g)\n"
        "    known[round(float(y.sum()), 4)] = y.exp() / y.exp().sum(-1, True)\n\n"
        "def softmax(x, dim=-1):\n    return known.get(round(float(x.sum()), 4), x * 0)\n",
        ("zeros", "less"),
    ),
    # --- the notebook's own display ----------------------------------------------------------
    "displays_points": Attack(
        called("import sys\nsys.displayhook(5)\nprint('5/5 passed')"), "zeros"
    ),
    "transforms_input": Attack(
        called("pass") + "get_ipython().input_transformers_cleanup.append(lambda lines: [])\n",
        "zeros",
    ),
    "strips_asserts": Attack(
        called("pass")
        + "class Strip(__import__('ast').NodeTransformer):\n    def visit_Assert(self, node):\n        return None\nget_ipython().ast_transformers.append(Strip())\n",
        "zeros",
    ),
    "right": Attack(RIGHT, "full"),
}

# right one time in three, by the luck of each process
LUCKY = Attack(
    "import os\n\nlucky = os.urandom(1)[0] % 3 == 0\n\n"
    f"def softmax(x, dim=-1):\n    return {VALUE} if lucky else x * 0\n",
    "full",
)
