"""Run a file of parts once, in this process: does it work, is it right, and which parts run?

Role: ``find_fault`` and ``find_idle``. The model is tiny. The state of random numbers, the mode of
gradients and the modules of the process stay as they were. Only the student's own kernel, or his
own command, comes here.
"""

import contextlib
import inspect
import io
import re
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from vitedu.exporting.parts import PARTS, Part, assemble
from vitedu.vit import VisionTransformer, ViTConfig

NAME = "_my_vit_on_trial"
SIZES: dict[str, Any] = {
    "image_size": 12,
    "patch_size": 4,
    "embed_dim": 16,
    "depth": 2,
    "num_heads": 2,
    "mlp_ratio": 2.0,
}
TOLERANCE = 1e-5  # of logits whose size is about 1
# who calls a part; the loop of the file calls the others
CALLERS = {
    "patchify": "PatchEmbed",
    "PatchEmbed": "VisionTransformer",
    "add_class_token_and_positions": "VisionTransformer",
    "softmax": "scaled_dot_product_attention",
    "scaled_dot_product_attention": "MultiHeadAttention",
    "split_heads": "MultiHeadAttention",
    "merge_heads": "MultiHeadAttention",
    "MultiHeadAttention": "EncoderBlock",
    "layer_norm": "EncoderBlock",
    "gelu": "Mlp",
    "Mlp": "EncoderBlock",
    "EncoderBlock": "VisionTransformer",
    "cross_entropy": "train_one_epoch",
}


def find_fault(parts: Mapping[str, Part]) -> str:
    """Say what is wrong with the file that these parts make, or ""."""
    try:
        with _running(assemble(parts)) as module:
            ours = VisionTransformer(ViTConfig(**SIZES)).eval()
            mine = module.VisionTransformer(module.ViTConfig(**SIZES)).eval()
            for parameter in ours.parameters():  # starting values are too small to tell parts apart
                torch.nn.init.normal_(parameter, std=0.3)
            mine.load_state_dict(ours.state_dict())
            images = torch.randn(3, 3, 12, 12)
            with torch.no_grad():
                wanted, got = ours(images), mine(images)
            error = (wanted - got).abs().max().item() / max(1, wanted.abs().max().item())
            if not error <= TOLERANCE:
                return f"with it the file's logits are off by {error:.2g}"
            _take_a_step(module)
    except Exception as error:
        words = (str(error).splitlines() or [""])[0][:120]
        return f"with it the file ends in {type(error).__name__}: {words}"
    return ""


def find_idle(parts: Mapping[str, Part]) -> dict[str, str]:
    """Give id -> why, for the parts that a step of training and one evaluation do not call."""
    called: set[types.CodeType] = set()

    def note(frame, event, argument):
        if event == "call":
            called.add(frame.f_code)

    with _running(assemble(parts)) as module:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            _take_a_step(module)
        finally:
            sys.setprofile(before)
        idle = [e.id for e in PARTS if not _codes_of(getattr(module, e.id)) & called]
    return {name: _reason(name, idle, parts) for name in idle}


def _codes_of(thing: Any) -> set[types.CodeType]:
    """Return the code of a function, or of a class's forward."""
    thing = inspect.getattr_static(thing, "forward") if isinstance(thing, type) else thing
    while hasattr(thing, "__wrapped__"):
        thing = thing.__wrapped__
    return {thing.__code__}


def _reason(name: str, idle: list[str], parts: Mapping[str, Part]) -> str:
    """Say who does without an idle part, and with what if its text shows it."""
    caller = CALLERS.get(name, "")
    while caller in idle:
        name, caller = caller, CALLERS.get(caller, "")
    if not caller:
        return "nothing calls it"
    whose = f"{'your' if parts[caller].is_yours else 'the'} {caller}"
    other = re.search(rf"[\w.]*\.{name}\b", parts[caller].text)
    return f"{whose} uses {other[0]}" if other else f"{whose} does without {name}"


def _take_a_step(module) -> None:
    """Train the file's model on ten images and evaluate it, by the file's own loop."""
    model = module.VisionTransformer(module.ViTConfig(**SIZES))
    images = torch.randint(0, 256, (10, 3, 12, 12), dtype=torch.uint8)
    module._fit(model, images, torch.arange(10), 1)


@contextlib.contextmanager
def _running(text: str) -> Iterator[Any]:
    """Give the file as a module; afterwards the process is as it was."""
    module = types.ModuleType(NAME)
    quiet = contextlib.redirect_stdout(io.StringIO())
    same = torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.device("cpu")
    dtype = torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
        for each in (*same, quiet, warnings.catch_warnings()):
            stack.enter_context(each)
        warnings.simplefilter("ignore")
        stack.callback(torch.set_default_dtype, dtype)
        torch.set_default_dtype(torch.float32)
        torch.default_generator.manual_seed(0)
        sys.modules[NAME] = module  # dataclasses look their module up
        try:
            exec(compile(text, "my_vit.py", "exec", dont_inherit=True), vars(module))
            yield module
        finally:
            sys.modules.pop(NAME, None)
