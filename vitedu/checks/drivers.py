"""Drivers for exercises that are neither a plain function nor a layer. They register on import.

Imports the standard library, numpy and torch only: see ``vitedu.checks.probing``.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from vitedu.checks.guard import seed_everything
from vitedu.checks.probing import (
    LEFT,
    Case,
    Observation,
    apply,
    build_args,
    changed_args,
    changes_of,
    construct,
    driver,
    keep,
    keep_results,
    state_of,
    type_name,
)


@driver
def layer_from_layer(answer, case: Case, seen: Observation) -> None:
    """Call a function that turns one layer into an ``nn.Linear``.

    Writes down its parameters and whether they share memory with the given layer.
    """
    args = build_args(case)
    result = apply(answer, case, args)
    is_linear = type(result) is nn.Linear  # a subclass may show another weight than it has
    seen.types["result"] = "nn.Linear" if is_linear else type_name(result)
    seen.modified = changed_args(case, args)
    if not is_linear:
        return
    keep(seen, "weight", result.weight)
    seen.facts["a bias if and only if conv has one"] = (
        "with a bias" if result.bias is not None else "without a bias"
    )
    if result.bias is not None:
        keep(seen, "bias", result.bias)
    learns = [name for name, value in nn.Module.named_parameters(result) if value.requires_grad]
    wanted = ["weight", "bias"] if result.bias is not None else ["weight"]
    missing = [name for name in wanted if name not in learns]
    seen.facts["weight and bias are parameters that learn"] = (
        f"{' and '.join(missing)} cannot learn" if missing else "they are"
    )
    (source,) = args.values()
    before = [value.detach().clone() for value in (result.weight, result.bias) if value is not None]
    with torch.no_grad():
        for value in source.parameters():
            value.add_(1.0)
    after = [value for value in (result.weight, result.bias) if value is not None]
    own = all(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    seen.facts["a copy of its own"] = "its own" if own else "memory shared with conv"


# --- notebook 04: training ----------------------------------------------------------------------


@driver
def schedule(answer, case: Case, seen: Observation) -> None:
    """Call a function for every step in ``args["step"]`` and store its numbers as one array."""
    rates = []
    for step in case.args["step"]:
        one = Observation()
        keep(one, "rate", apply(answer, case, {**case.args, "step": step}), number=True)
        seen.types["output"] = one.types["rate"]
        if one.types["rate"] != "number":
            return
        rates.append(one.arrays["rate"])
    seen.arrays["output"] = torch.stack(rates)


@driver
def groups(answer, case: Case, seen: Observation) -> None:
    """Call a function that sorts a model's parameters into groups; write down which are where."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    found, trouble = _read_groups(result, "weight_decay")
    seen.types["result"] = trouble or "groups: dicts with params and weight_decay"
    if trouble:
        return
    seen.facts["two groups"] = f"{len(found)} group(s)"
    seen.facts[ONCE] = _not_once(names, found)
    given = f"{case.args['weight_decay']:.6g}"
    fact = f"weight_decay {given} for matrices and kernels, 0 for all others"
    seen.facts[fact] = _who_has_what(names, found)


ONCE = "every parameter of the model in exactly one group"


def _not_once(names: dict[int, str], found: list[tuple[str, list[torch.Tensor]]]) -> str:
    """Say which parameters of a model are in no group or in several; "each once" if none are."""
    members = [id(parameter) for _, parameters in found for parameter in parameters]
    who_is_wrong = {
        "left out": [name for key, name in names.items() if key not in members],
        "more than once": [name for key, name in names.items() if members.count(key) > 1],
        "not the model's own": ["tensors"] * any(key not in names for key in members),
    }
    wrong = "; ".join(f"{words}: {', '.join(who)}" for words, who in who_is_wrong.items() if who)
    return wrong or "each once"


def _who_has_what(names: dict[int, str], found: list[tuple[str, list[torch.Tensor]]]) -> str:
    """List the parameters of each value of the option, over all groups."""
    by_value: dict[str, list[str]] = {}
    for value, parameters in found:
        own = [names[id(parameter)] for parameter in parameters if id(parameter) in names]
        by_value.setdefault(value, []).extend(own)
    return "; ".join(f"{v}: {', '.join(sorted(who))}" for v, who in sorted(by_value.items()) if who)


def _read_groups(result, option: str) -> tuple[list[tuple[str, list[torch.Tensor]]], str]:
    """Read the groups as an optimizer would.

    Returns:
        (value of the option, parameters) for each group, and "" or why an optimizer would refuse
        the groups.
    """
    if isinstance(result, (torch.Tensor, str, dict)) or not isinstance(result, Iterable):
        return [], type_name(result)
    found = []
    for group in result:
        if not isinstance(group, Mapping) or "params" not in group:
            return [], f"a group that is a {type_name(group)} without 'params'"
        parameters = group["params"]
        if isinstance(parameters, torch.Tensor):
            parameters = [parameters]
        if isinstance(parameters, (set, frozenset, str)) or not isinstance(parameters, Iterable):
            return [], f"params of type {type_name(parameters)}, which no optimizer takes"
        parameters = [pair[1] if isinstance(pair, tuple) else pair for pair in parameters]
        for parameter in parameters:
            if not isinstance(parameter, torch.Tensor):
                return [], f"params that hold a {type_name(parameter)}"
        value = group.get(option)
        value = "the optimizer's default" if value is None else f"{float(value):.6g}"
        found.append((value, parameters))
    return found, ""


@driver
def random_images(answer, case: Case, seen: Observation) -> None:
    """Call a random function on one batch after another with the same generator; store all outputs.

    ``extra["sizes"]`` splits the case's images into batches.
    """
    args = build_args(case)
    kept = []
    for images in args["images"].split(list(case.extra["sizes"])):
        result = apply(answer, case, {**args, "images": images})
        name = f"output of {len(images)} image(s)"
        keep(seen, name, result, drawn=True)
        if name not in seen.draws or seen.draws[name].shape != images.shape:
            break
        kept.append(result.detach())
    else:
        keep(seen, "all outputs", torch.cat(kept), drawn=True)
    seen.modified = changed_args(case, args)


@driver
def repeated_draws(answer, case: Case, seen: Observation) -> None:
    """Call a random function several times and store the outputs.

    "first" and "again" use the same generator state with different global states, "other" and
    "third" use other states of the generator. Two, because one draw can come again by chance.
    """
    calls = (("first", 1, 10), ("again", 1, 20), ("other", 2, 10), ("third", 3, 10))
    for name, seed, everything in calls:
        seed_everything(everything)
        args = build_args(case)
        args["generator"].manual_seed(seed + case.extra["seed"])
        before = args["generator"].get_state()
        keep(seen, name, apply(answer, case, args), drawn=True)
        moved = not torch.equal(args["generator"].get_state(), before)
        seen.facts["every call moves the generator on"] = "it moves" if moved else "it stays"


class Gate(nn.Module):
    """Halve x in eval mode. It depends on the mode as dropout does, but it is not random."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x in train mode, x / 2 in eval mode."""
        return x if self.training else 0.5 * x


class Journal(list):
    """A list that a copy of a model shares with the original."""

    def __deepcopy__(self, memo) -> "Journal":
        return self


class WatchedClassifier(nn.Module):
    """Two linear layers with a gate between them. It records how it is used.

    Every call adds (modes of all modules, whether the logits carry gradients) to ``journal``. A
    copy of the model writes to the same journal.
    """

    def __init__(self, state: dict[str, torch.Tensor], journal: Journal):
        super().__init__()
        (hidden, inputs), (classes, _) = state["body.0.weight"].shape, state["head.weight"].shape
        dtype = state["head.weight"].dtype
        body = [nn.Linear(inputs, hidden, bias=False, dtype=dtype), Gate()]
        if "body.2.running_mean" in state:
            body += [nn.BatchNorm1d(hidden, dtype=dtype)]
        self.body = nn.Sequential(*body)
        self.head = nn.Linear(hidden, classes, bias=False, dtype=dtype)
        self.load_state_dict({name: value.clone() for name, value in state.items()})
        self.write_in(journal)

    def write_in(self, journal: Journal) -> None:
        """Use another journal from now on."""
        self.__journal = journal  # a mangled name, so that an answer does not use it by accident

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Compute the logits (B, K) of images (B, ...)."""
        logits = self.head(self.body(images.flatten(1)))
        modes = {"train" if part.training else "eval" for part in nn.Module.modules(self)}
        self.__journal.append((" and ".join(sorted(modes)), logits.requires_grad))
        return logits


class PlainDescent(torch.optim.Optimizer):
    """Gradient descent with two groups. It records every step and the norm of its gradient.

    The base class's ``__init__`` is not called, because its hooks import torch's compiler, which
    takes seconds.
    """

    def __init__(self, parameters, lr: float, steps: list, norms: list):
        first, *others = parameters
        self.param_groups = [
            {"params": some, "lr": lr, "weight_decay": 0.0} for some in ([first], others)
        ]
        self.defaults = {"lr": lr}
        self.state = defaultdict(dict)
        self.__steps, self.__norms = steps, norms

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradients."""
        for parameter in self.__parameters():
            parameter.grad = None

    def __parameters(self) -> list[torch.Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def step(self, closure=None):
        """Take one step of gradient descent and record it."""
        loss = closure() if closure else None
        self.__steps.append("optimizer")
        moved = [p for p in self.__parameters() if p.grad is not None]
        squares = [float(p.grad.double().square().sum()) for p in moved]
        self.__norms.append(math.sqrt(sum(squares)))
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter -= group["lr"] * parameter.grad
        return loss


class Decay:
    """A scheduler that multiplies the learning rate by ``factor`` and records every step."""

    def __init__(self, optimizer: PlainDescent, factor: float, steps: list):
        self.optimizer, self.factor, self.__steps = optimizer, factor, steps

    def step(self, epoch=None) -> None:
        """Multiply the learning rate of every group."""
        self.__steps.append("scheduler")
        for group in self.optimizer.param_groups:
            group["lr"] *= self.factor

    def get_last_lr(self) -> list[float]:
        """Return the current learning rate of every group."""
        return [group["lr"] for group in self.optimizer.param_groups]


UNREAD = ("model", "batches")  # arguments that the driver replaces


def _batches(case: Case):
    """Return the batches as a list or, with ``extra["once"]``, as a generator that is read once."""
    batches = [(images.clone(), labels.clone()) for images, labels in case.args["batches"]]
    return (pair for pair in batches) if case.extra.get("once") else batches


def _keep_means(seen: Observation, case: Case, result) -> None:
    """Store the returned numbers. A number with a graph gets a type of its own.

    Such a number is wrong because its graph keeps every batch in memory.
    """
    keep_results(seen, case, result)
    if isinstance(result, (tuple, list)) and len(result) == len(case.outputs):
        for name, value in zip(case.outputs, result, strict=True):
            if seen.types[name] == "number" and getattr(value, "requires_grad", False):
                seen.types[name] = "number with a graph behind it"


def _classifier(case: Case, journal: Journal) -> WatchedClassifier:
    """Return the classifier of an earlier call, or a new one, with the case's weights and modes.

    The parts named in ``extra["other_mode"]`` are in the mode that the model is not in.
    """
    kept = case.extra.get("kept", [])
    if not kept:
        kept.append(WatchedClassifier(case.state, journal))
    model = kept[0]
    model.load_state_dict(case.state)
    model.write_in(journal)
    model.train(case.extra["training"])
    for name in case.extra.get("other_mode", ()):
        part = model.get_submodule(name)
        part.training = not part.training
    return model


@driver
def epoch(answer, case: Case, seen: Observation) -> None:
    """Train the case's classifier for an epoch.

    ``extra["keep"]`` lists what to write down: "results", "learning", "mode", "order";
    ``extra["gradients_left"]`` has the model come with gradients.
    """
    journal = Journal()
    steps: list[str] = []
    norms: list[float] = []
    model = _classifier(case, journal)
    if case.extra.get("gradients_left"):  # by whoever used the model before
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    before = state_of(model)
    optimizer = PlainDescent(model.parameters(), case.args["optimizer"], steps, norms)
    scheduler = Decay(optimizer, case.args["scheduler"], steps)
    result = apply(
        answer,
        case,
        {"model": model, "batches": _batches(case), "optimizer": optimizer, "scheduler": scheduler},
    )
    if "kept" in case.extra:
        # The exercise does not say in which mode the model is left.
        model.train(case.extra["training"])
        seen.facts[LEFT] = changes_of(model, before)
    aspects, count = case.extra["keep"], len(case.args["batches"])
    if "results" in aspects:
        _keep_means(seen, case, result)
    if "learning" in aspects:
        norms = (norms + [-1.0] * count)[:count]
        seen.arrays["gradient norm at each step"] = torch.tensor(
            norms, dtype=torch.float64, device="cpu"
        )
        state = torch.cat(
            [value.detach().flatten() for value in nn.Module.state_dict(model).values()]
        )
        seen.arrays["parameters after the epoch"] = state
        options = [{n: v for n, v in g.items() if n != "params"} for g in optimizer.param_groups]
        seen.facts["the optimizer's groups as the scheduler leaves them"] = str(options)
    if "mode" in aspects:
        modes = sorted({mode for mode, learns in journal if learns})
        seen.facts["every part of the model in train mode"] = ", ".join(modes) or "never called"
    if "order" in aspects:
        walk = " ".join(steps) or "neither is stepped"
        seen.facts["for every batch one step of the optimizer, then one of the scheduler"] = walk


@driver
def evaluation(answer, case: Case, seen: Observation) -> None:
    """Evaluate the case's classifier, which replaces ``args["model"]``.

    ``extra["keep"]`` lists what to write down: "results", "eval", "modes", "gradients".
    """
    journal = Journal()
    model = _classifier(case, journal)
    for name in case.extra.get("frozen", ()):
        model.get_parameter(name).requires_grad_(False)
    parts = {
        name: (part, type(part), part.training) for name, part in nn.Module.named_modules(model)
    }
    learns = {name: value.requires_grad for name, value in nn.Module.named_parameters(model)}
    state = state_of(model)
    for value in nn.Module.parameters(model):  # what an earlier loss.backward() left
        value.grad = torch.ones_like(value)
    torch.set_grad_enabled(case.extra.get("enabled", True))
    args = build_args(case) | {"model": model}
    if "batches" in args:
        args["batches"] = _batches(case)
    result = apply(answer, case, args)
    kept = {name: value for name, value in case.args.items() if name not in UNREAD}
    seen.modified = changed_args(replace(case, args=kept), args)
    enabled = torch.is_grad_enabled()
    if "kept" in case.extra:
        seen.facts[LEFT] = changes_of(model, state)
    aspects = case.extra["keep"]
    if "results" in aspects:
        _keep_means(seen, case, result)
    if "eval" in aspects:
        used = ", ".join(sorted({mode for mode, _ in journal})) or "never called"
        seen.facts["every part of the model in eval mode"] = used
        changed = [
            name
            for name, value in nn.Module.state_dict(model).items()
            if not torch.equal(value, case.state.get(name, value))
        ]
        text = f"changed: {', '.join(changed)}" if changed else "unchanged"
        seen.facts["parameters and running statistics as before"] = text
    if "modes" in aspects:
        words = {True: "train", False: "eval"}
        # compared by identity, because an answer may leave an object that equals everything
        changed = [
            f"{name or 'the model itself'} went from {words[before]} to {words[not before]}"
            for name, (part, kind, before) in parts.items()
            if type(part) is not kind or part.training is not before
        ]
        seen.facts["every part in the mode it was in before"] = "; ".join(changed) or (
            "as before" if journal else "never called"
        )
    if "gradients" in aspects:
        built = any(attached for _, attached in journal)
        seen.facts["no graph for gradients"] = (
            ("a graph was built" if built else "none") if journal else "never called"
        )
        if case.extra.get("enabled", True):
            seen.facts["gradients possible again afterwards"] = "yes" if enabled else "switched off"
        else:
            fact = "gradients switched off afterwards, as they were before"
            seen.facts[fact] = "switched on" if enabled else "yes"
        lost = [
            name
            for name, value in nn.Module.named_parameters(model)
            if value.grad is None or not torch.equal(value.grad, torch.ones_like(value))
        ]
        seen.facts["gradients that were there before stay"] = (
            f"changed: {', '.join(lost)}" if lost else "they stay"
        )
        changed = [
            f"{name} {'learns' if value.requires_grad else 'is frozen'}"
            for name, value in nn.Module.named_parameters(model)
            if value.requires_grad != learns[name]
        ]
        seen.facts["every parameter frozen or not, as before"] = "; ".join(changed) or "yes"


# --- notebook 07: branches that are dropped -------------------------------------------------------

THROUGH = "gradients pass where a sample stays"


@driver
def dropped(answer, case: Case, seen: Observation) -> None:
    """Call a function that drops samples, batch after batch with one generator; keep all it gave.

    ``extra["size"]`` is the number of samples in a batch. Results of the first batch tell whether
    gradients pass.
    """
    args = build_args(case)
    kept: list[torch.Tensor] = []
    for x in args["x"].split(case.extra["size"]):
        leaf = x.clone().requires_grad_(not kept)
        given = leaf.clone() if not kept else leaf
        result = apply(answer, case, {**args, "x": given})
        keep(seen, f"output of {len(x)} sample(s)", result, drawn=True)
        if not isinstance(result, torch.Tensor) or result.shape != x.shape:
            seen.types["all outputs"] = "tensor"  # the type and shape of this one are told first
            break
        if not kept:
            seen.facts[THROUGH] = _passed_through(leaf, result)
            if not torch.equal(given.detach(), x):
                seen.modified = ("x",)
        kept.append(result.detach())
    else:
        keep(seen, "all outputs", torch.cat(kept), drawn=True)


def _passed_through(leaf: torch.Tensor, result: torch.Tensor) -> str:
    """Say whether the gradient of a result is the factor by which it was multiplied."""
    torch.set_grad_enabled(True)
    factor = result.detach() / leaf.detach()
    if not result.requires_grad:  # a sample that is dropped may be a constant
        return "no gradient at all" if factor.any() else "they do"
    (slope,) = torch.autograd.grad(result.sum(), leaf)
    return "they do" if torch.allclose(slope, factor, rtol=1e-3, atol=1e-5) else "other gradients"


# --- notebook 08: cheaper attention ---------------------------------------------------------------


@driver
def whole_numbers(answer, case: Case, seen: Observation) -> None:
    """Call a function that returns a tensor of integers; any integer dtype is accepted."""
    args = build_args(case)
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    if isinstance(result, torch.Tensor) and result.dtype in _WHOLE:
        result = result.long()
    keep_results(seen, case, result)


_WHOLE = (torch.int8, torch.uint8, torch.int16, torch.int32)


class _Work(TorchDispatchMode):
    """Add up the work of all kernels.

    Every result of a counted tensor is counted too, in other threads as well. A counted tensor has
    no memory of its own, so that only torch can work with its numbers.

    A matrix product counts its multiplications. Any other kernel counts the elements of the largest
    tensor that takes part.
    """

    _should_skip_dynamo = classmethod(lambda cls: False)  # otherwise torch imports its compiler

    def __init__(self):
        super().__init__()
        self.total = 0
        # id of a counted tensor -> (the counted tensor, the tensor with its numbers)
        inside: dict[int, tuple] = {}

        class Counted(torch.Tensor):
            """A tensor whose operations are all counted."""

            __torch_function__ = torch._C._disabled_torch_function_impl

            def __repr__(self):
                return f"tensor of shape {tuple(self.shape)}"

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                raise RuntimeError("this call is hidden from whoever counts its work")

        def counted(x):
            if type(x) is not torch.Tensor:
                return x
            shown = torch.Tensor._make_wrapper_subclass(
                Counted, x.shape, x.stride(), dtype=x.dtype, device=x.device
            )
            inside[id(shown)] = shown, x
            return shown

        self.counted = counted
        self.plain = lambda x: inside[id(x)][1] if isinstance(x, Counted) else x

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = args, kwargs or {}
        plain_args, plain_kwargs = tree_map(self.plain, given)
        result = func(*plain_args, **plain_kwargs)
        factors = [x for x in plain_args if isinstance(x, torch.Tensor)][-2:]
        tensors = [x for x in tree_leaves((plain_args, result)) if isinstance(x, torch.Tensor)]
        if func.overloadpacket in _PRODUCTS:
            self.total += result.numel() * factors[0].shape[-1]
        elif func.overloadpacket is torch.ops.aten._local_scalar_dense:
            self.total += _A_NUMBER
        elif not _is_view(func):
            self.total += max((x.numel() for x in tensors), default=0)
        written = given[1].get("out", args[0] if func._schema.name.endswith("_") else None)
        if written is None:
            return tree_map(self.counted, result)
        if type(written) is torch.Tensor:
            raise RuntimeError("its result is written into a tensor that was there before the call")
        return written


def _is_view(func) -> bool:
    """Return whether an operation returns a view of an argument, which is no work."""
    alias = [r.alias_info for r in func._schema.returns if r.alias_info is not None]
    return bool(alias) and not any(one.is_write for one in alias)


_PRODUCTS = frozenset(
    getattr(torch.ops.aten, name) for name in "mm bmm addmm baddbmm mv addmv".split()
)
_A_NUMBER = 100  # the work of reading one number: an answer may test a few, not read them all


@driver
def growth(answer, case: Case, seen: Observation) -> None:
    """Compare the work of a call with that of a call with four times the tokens (axis -2).

    The work must not grow faster than the tokens, nor reach that of two products of queries by
    keys.
    """
    work = []
    for times in (1, 4):
        args = {
            name: torch.cat([value] * times, dim=-2) for name, value in build_args(case).items()
        }
        with _Work() as counter:
            counted = {name: counter.counted(value) for name, value in args.items()}
            result = tree_map(counter.plain, apply(answer, case, counted))
        work.append(counter.total)
    keep_results(seen, case, result)
    q, k, v = args.values()
    most = q[..., 0].numel() * k.shape[-2] * (q.shape[-1] + v.shape[-1])
    # an answer that returns a stored result does no work at first; another probe reports that
    is_about = work[1] < (min(6 * work[0], most) if work[0] else most)
    words = f"{'about' if is_about else 'far more than'} four times the work"
    words = words if work[1] else "no work at all"
    seen.facts["four times the tokens, about four times the work"] = words


# --- notebook 09: published weights ---------------------------------------------------------------


_MANY = 350  # names; a right answer to a case has fewer, and no reply carries many more


@driver
def renamed(answer, case: Case, seen: Observation) -> None:
    """Call a function that renames the tensors of a dict; store each under its new name."""
    args = build_args(case)
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    kind = "dict" if isinstance(result, Mapping) else type_name(result)
    if kind == "dict" and len(result) > _MANY:
        kind = f"dict of {len(result):,} names"
    seen.types["what comes back"] = kind
    if kind != "dict":
        return
    for name, tensor in result.items():
        keep(seen, str(name), tensor)
    names = ", ".join(sorted(map(str, result)))
    seen.facts["no name that the course's model does not have"] = f": {names}"


@driver
def rates(answer, case: Case, seen: Observation) -> None:
    """Call a function that groups a model's parameters; write down each learning rate."""
    args = build_args(case)
    names = {id(parameter): name for name, parameter in args["model"].named_parameters()}
    result = apply(answer, case, args)
    seen.modified = changed_args(case, args)
    found, trouble = _read_groups(result, "lr")
    seen.types["result"] = trouble or "groups: dicts with params and lr"
    if not trouble:
        seen.facts[ONCE] = _not_once(names, found)
        seen.facts["the learning rate of each parameter"] = _who_has_what(names, found)


@driver
def merged(answer, case: Case, seen: Observation) -> None:
    """Build a layer with an adapter, merge it; store the result and what became of the layer."""
    layer = construct(answer, case, seen)
    if layer is None:
        return
    frozen = [n for n, value in nn.Module.named_parameters(layer) if not value.requires_grad]
    seen.facts["what is frozen: linear, and nothing else"] = f": {', '.join(sorted(frozen))}"
    before = {name: value.clone() for name, value in nn.Module.state_dict(layer).items()}
    result = apply(layer.merged, case, {})
    is_linear = type(result) is nn.Linear  # a subclass may hide its parameters
    seen.types["result"] = "nn.Linear" if is_linear else type_name(result)
    if not is_linear:
        return
    keep(seen, "weight", result.weight)
    bias = "without a bias" if result.bias is None else "with a bias"
    seen.facts["a bias if and only if linear has one"] = bias
    if result.bias is not None:
        keep(seen, "bias", result.bias)
    stays = all(torch.equal(x, before[n]) for n, x in nn.Module.state_dict(layer).items())
    seen.facts["the layer itself as it was"] = "as before" if stays else "changed by merged()"
    sources = {value.untyped_storage().data_ptr() for value in nn.Module.parameters(layer)}
    own = not any(value.untyped_storage().data_ptr() in sources for value in result.parameters())
    seen.facts["a copy of its own"] = "its own" if own else "memory shared with the layer"
