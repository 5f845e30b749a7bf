"""Checkers of notebook 04: loss, schedule, parameter groups, augmentation, one epoch."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vitedu import training as reference
from vitedu.checks import crops
from vitedu.checks.diagnosing import Misconception
from vitedu.checks.drawing import curves
from vitedu.checks.engine import Checker
from vitedu.checks.inputs import distinct, draw, normal
from vitedu.checks.probing import Case, Observation
from vitedu.checks.recipes import CpuGenerator, Network
from vitedu.checks.values import ValueChecker, ValueMistake

# --- cross_entropy ------------------------------------------------------------------------------


def cross_entropy_cases(g: torch.Generator) -> list[Case]:
    """Draw logits and labels; no batch whose labels are all the favourite classes."""

    def case(B, K, smoothing=None, scale=2.0, note="", dtype=torch.float32, **rest):
        logits = scale * normal(g, B, K, dtype=torch.float64)
        labels = torch.randint(0, K, (B,), generator=g)
        labels[0] = (logits[0].argmax() + 1) % K
        args = {"logits": logits.to(dtype), "labels": labels}
        if smoothing is not None:
            args["label_smoothing"] = smoothing
            note = f", label_smoothing={smoothing:g}{note}"
        return Case(f"logits ({B}, {K}){note}", args, **rest)

    B, K, K2 = distinct(g, 3, 3, 7)
    s, t = (draw(g, 4, 20) / 50, draw(g, 21, 40) / 50)
    large = {"part": "large scores", "rtol": 1e-4, "atol": 8e-3}  # logsumexp of 1e4 rounds to 2e-3
    smooth = {"part": "label smoothing", "gradients": ("logits",)}
    flat = 1e4 + normal(g, B, K)
    return [
        case(B, K, gradients=("logits",)),
        case(K, B, gradients=("logits",)),
        case(B, K2, smoothing=s, **smooth),
        case(K2, B, smoothing=t, keywords=("label_smoothing",), note=", by keyword", **smooth),
        case(B, K, smoothing=1.0, part="label smoothing"),
        case(1, K, part="other sizes"),
        case(K2, K2, part="other sizes"),
        case(K, 2, part="other sizes"),
        case(B, K, dtype=torch.float64, part="other sizes", smoothing=s, note=", float64"),
        case(B, K, scale=1e4, note=", scores around 10,000", **large),
        case(B, K, scale=1e4, smoothing=s, note=", scores around 10,000", **large),
        Case(
            "scores all near 10,000", {"logits": flat, "labels": torch.arange(B) % K}, **large
        ),
        Case(
            "scores all near -10,000", {"logits": -flat, "labels": torch.arange(B) % K}, **large
        ),
        case(B, K, smoothing=s, note=", on an accelerator", part="any device", on_accelerator=True),
    ]  # fmt: skip


def faulty_cross_entropy(mistakes: frozenset[str]):
    """Price with the named mistakes made."""

    def log_probs_of(logits):
        if "softmax_first" in mistakes:
            logits = logits.softmax(dim=-1)
        if "no_softmax" in mistakes:
            return logits
        dim = 0 if "over_the_batch" in mistakes else -1
        if "overflows" in mistakes:
            return (logits.exp() / logits.exp().sum(dim=dim, keepdim=True)).log()
        if "epsilon_in_log" in mistakes:
            return (logits.softmax(dim=dim) + 1e-8).log()
        return logits.log_softmax(dim=dim)

    def cross_entropy(logits, labels, label_smoothing=0.0):
        B, K = logits.shape
        s = 0.0 if "smoothing_ignored" in mistakes else label_smoothing
        if "prediction_as_label" in mistakes:
            labels = logits.argmax(dim=-1)
        if "labels_shifted" in mistakes:
            labels = (labels - 1) % K
        log_probs = log_probs_of(logits)
        if "base_two" in mistakes:
            log_probs = log_probs / math.log(2)
        if "no_log" in mistakes:
            log_probs = log_probs.exp()
        if "every_pair" in mistakes:  # log_probs[:, labels]
            on_label = log_probs[:, labels].mean(dim=-1)
        else:
            on_label = log_probs.gather(1, labels[:, None]).squeeze(1)
        on_all = log_probs.mean(dim=-1)
        if "smoothing_summed" in mistakes:
            on_all = on_all * K
        if "smoothing_off_label" in mistakes:
            on_all = (log_probs.sum(dim=-1) - on_label) / (K - 1)
        if "smoothing_missing_rest" in mistakes:
            on_all = on_all * 0
        weight = s if "smoothing_swapped" in mistakes else 1 - s
        if "smoothing_adds" in mistakes:
            weight = 1.0
        if "smoothing_swapped" in mistakes and s == 0:
            weight = 1.0  # who writes it so tests for 0 first
        rest = 1 - weight if "smoothing_swapped" in mistakes else s
        loss = -(weight * on_label + rest * on_all)
        if "sign" in mistakes:
            loss = -loss
        if "first_image" in mistakes:
            return loss[0]
        total = loss.sum()
        if "summed" in mistakes:
            return total
        if "over_classes" in mistakes:
            return total / (B * K)
        return total / B

    return cross_entropy


def _own_loss(case: Case, seen: Observation) -> str:
    value = seen.arrays.get("output")
    return f"{float(value):.4g}" if value is not None and value.numel() == 1 else "another loss"


CROSS_ENTROPY_BANK = (
    Misconception(
        "summed", "the losses of the batch are added, not averaged", "the mean over the batch",
        "Twice the batch would make twice the gradient, and the learning rate would depend on the batch size.",
        "Divide by the number of images, or end with .mean().", evidence=_own_loss,
    ),
    Misconception(
        "over_classes", "the mean runs over images and classes", "the sum over classes, the mean over images",
        "A target with one class has K-1 zeros; they belong to the sum and are no losses of their own.",
        "Sum along dim=-1 first, then take the mean.", evidence=_own_loss,
    ),
    Misconception(
        "over_the_batch", "the probabilities sum to 1 over the batch, not over the classes", "log-probabilities along dim=-1",
        "Each image spreads one unit of belief over the classes.", "Look at the dim of softmax or logsumexp.", evidence=_own_loss,
    ),
    Misconception(
        "sign", "the sign is turned", "a loss of at least 0", "The optimizer would make the truth less likely.",
        "The log of a probability is at most 0; look for the minus.", evidence=_own_loss,
    ),
    Misconception(
        "softmax_first", "softmax is applied twice", "log softmax of the logits themselves",
        "Probabilities lie between 0 and 1; as logits they can hardly prefer any class.",
        "Leave the logits as the model gave them.", evidence=_own_loss,
    ),
    Misconception(
        "no_softmax", "the logits are taken for log-probabilities", "log-probabilities whose exp sums to 1",
        "A logit may be any number; a model could lower this loss without end by making all logits large.",
        "Subtract the logsumexp of each row.", evidence=_own_loss,
    ),
    Misconception(
        "no_log", "the log is missing", "minus the log of the probability",
        "Without the log a confident mistake costs hardly more than a doubtful one.",
        "Look for the log between probability and mean.", evidence=_own_loss,
    ),
    Misconception(
        "base_two", "the log has base 2", "the natural log", "It counts bits; the rest of the world, torch included, counts nats.",
        "Use log, not log2.", evidence=_own_loss,
    ),
    Misconception(
        "overflows", "large logits overflow", "a finite loss for logits of 10,000",
        "exp(89) is infinite in float32, and a probability of 0 has no log.",
        "Form log-probabilities from the logits with logsumexp or log_softmax.",
    ),
    Misconception(
        "epsilon_in_log", "a small number in the log hides large losses", "the loss of logits of 10,000, however large",
        "log(p + 1e-8) never asks more than 18, and its gradient vanishes where the model is most wrong.",
        "Form log-probabilities without forming probabilities.", evidence=_own_loss,
    ),
    Misconception(
        "prediction_as_label", "the price is that of the favourite class, not of the label", "the probability of the truth",
        "A model would be content with whatever it believes.", "Pick column labels[i], not argmax.", evidence=_own_loss,
    ),
    Misconception(
        "labels_shifted", "the label's neighbour is priced", "column labels[i] of row i", "Classes count from 0, and so do columns.",
        "Look for a - 1 at the labels.", evidence=_own_loss,
    ),
    Misconception(
        "every_pair", "every image is priced with every label", "row i with labels[i]",
        "log_probs[:, labels] gives a (B, B) table of all pairs.",
        "Use gather, or index rows and columns together: log_probs[arange, labels].", evidence=_own_loss,
    ),
    Misconception(
        "first_image", "only the first image counts", "the mean over the batch", "The others would teach nothing.",
        "Look for an index 0, or for a return inside the loop.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_ignored", "label_smoothing changes nothing", "a target of (1-s) on the label plus s/K on every class",
        "The argument is there to be used.", "Join the label's price with the mean price of all classes.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_off_label", "the label gets no share of s", "s/K on every class, the label included",
        "The paper mixes the label with a uniform distribution, and the label is part of that.",
        "The K shares are s/K, not s/(K-1).", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_missing_rest", "the label is made smaller, but s is given to nobody", "a target that sums to 1",
        "It only scales the loss.", "Add s times the mean price over all classes.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_summed", "every class gets s, not s/K", "a target that sums to 1", "K classes would share K times s.",
        "Take the mean over the classes, not the sum.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_adds", "the label keeps its full weight", "a target that sums to 1", "What the others get must come from somewhere.",
        "The label's own part is 1 - s.", evidence=_own_loss,
    ),
    Misconception(
        "smoothing_swapped", "s and 1-s have changed places", "1-s on the label", "s is the small share, for everybody.",
        "Look at which of the two multiplies the label's price.", evidence=_own_loss,
    ),
)  # fmt: skip

# --- warmup_cosine ------------------------------------------------------------------------------


def warmup_cosine_cases(g: torch.Generator) -> list[Case]:
    """Draw schedules; every step of a short run, some of a long one."""

    def case(total, warmup, peak, final=None, steps=None, note="", **rest):
        steps = tuple(range(total)) if steps is None else tuple(steps)
        args = {"step": steps, "total_steps": total, "warmup_steps": warmup, "peak_lr": peak}
        name = f"total_steps={total}, warmup_steps={warmup}, peak_lr={peak:g}"
        if final is not None:
            args["final_lr"] = final
            name += f", final_lr={final:g}"
        return Case(
            name + note, args, driver="schedule", rtol=1e-5, atol=2e-6 * max(peak, 1e-4), **rest
        )

    warmup, total = draw(g, 3, 6), draw(g, 11, 18)
    peak = draw(g, 2, 9) * 1e-3
    final = peak * draw(g, 15, 45) / 100
    long = draw(g, 2000, 4000)
    return [
        case(total, warmup, peak),
        case(total, 0, peak, part="no warm-up"),
        case(1, 0, peak, part="no warm-up"),
        case(total, warmup, peak, final, part="final rate"),
        case(total, 0, peak, final, part="final rate", keywords=("final_lr",), note=", by keyword"),
        case(total, 1, peak, part="other runs"),
        case(total, total - 1, peak, final, part="other runs"),
        case(total, warmup, 1, 0, part="other runs", note=", whole numbers"),
        case(
            long, long // 20, peak, final, part="other runs",
            steps=(0, 7, long // 20 - 1, long // 20, long // 3, long // 2, long - 2, long - 1),
        ),
    ]  # fmt: skip


def faulty_warmup_cosine(mistakes: frozenset[str]):
    """Schedule with the named mistakes made."""

    def shape(progress):
        if "linear_decay" in mistakes:
            return 1 - progress
        if "quarter_period" in mistakes:
            return math.cos(math.pi * progress / 2)
        turn = 2 * math.pi if "full_period" in mistakes else math.pi
        half = 1.0 if "not_halved" in mistakes else 0.5
        return half * (1 + math.cos(turn * progress))

    def warmup_cosine(step, total_steps, warmup_steps, peak_lr, final_lr=0.0):
        if "divides_by_zero" in mistakes:
            _ = step / warmup_steps
        if "warmup_ignored" in mistakes:
            warmup_steps = 0
        climbs = step <= warmup_steps if "climb_too_long" in mistakes else step < warmup_steps
        if climbs:
            done = step if "climb_from_zero" in mistakes else step + 1
            if "integer_division" in mistakes:
                return peak_lr * (done // warmup_steps)
            return peak_lr * done / warmup_steps
        if "no_decay" in mistakes:
            return peak_lr
        done = step if "peak_twice" in mistakes or "stretched" in mistakes else step + 1
        if "warmup_in_progress" in mistakes:
            progress = done / total_steps
        else:
            whole = total_steps if "never_ends" in mistakes else total_steps - warmup_steps
            progress = (done - warmup_steps) / (whole - 1 if "stretched" in mistakes else whole)
        if "final_ignored" in mistakes:
            return peak_lr * shape(progress)
        if "final_added" in mistakes:
            return final_lr + peak_lr * shape(progress)
        if "final_as_floor" in mistakes:
            return max(final_lr, peak_lr * shape(progress))
        return final_lr + (peak_lr - final_lr) * shape(progress)

    return warmup_cosine


def draw_schedule(case: Case, got: Observation, ids: list[str]):
    """Draw both curves."""
    if "output" not in got.arrays or len(case.args["step"]) != case.args["total_steps"]:
        return None
    given = {name: value for name, value in case.args.items() if name != "step"}
    expected = [reference.warmup_cosine(step, **given) for step in case.args["step"]]
    return curves(got.arrays["output"].tolist(), expected, "learning rate")


WARMUP_COSINE_BANK = (
    Misconception(
        "climb_from_zero", "the first step has learning rate 0", "peak_lr / warmup_steps at step 0",
        "Steps count from 0: step / warmup_steps wastes the first batch and never reaches the peak.",
        "The climb counts finished steps, this one included.",
    ),
    Misconception(
        "climb_too_long", "the climb takes one step too many", "the peak at step warmup_steps - 1, and never above",
        "At step warmup_steps the climb would go beyond the peak.", "Compare with <, not with <=.",
    ),
    Misconception(
        "peak_twice", "the peak is met twice, and final_lr never", "the peak once, final_lr exactly at the last step",
        "progress starts at 0 one step late and ends before 1.", "Put the last step, total_steps - 1, into your progress: it should be 1.",
    ),
    Misconception(
        "stretched", "the peak is met twice", "the peak once, at warmup_steps - 1",
        "The last step of the climb has the peak; the first of the cosine is already below it.",
        "Put step = warmup_steps into your progress: it should be above 0.",
    ),
    Misconception(
        "warmup_in_progress", "the cosine is already under way when the climb ends", "progress that starts at the end of the climb",
        "The curve jumps down from the peak.", "Take warmup_steps off both the steps done and the steps there are.",
    ),
    Misconception(
        "never_ends", "the cosine stops before its end", "progress of 1 at the last step",
        "The steps of the climb are taken off those done, but not off those there are.", "Divide by the number of steps after the climb.",
    ),
    Misconception(
        "warmup_ignored", "there is no climb", "a linear climb for step < warmup_steps",
        "Large steps at the start throw the weights far off before the norms have settled.", "Treat step < warmup_steps first.",
    ),
    Misconception(
        "divides_by_zero", "warmup_steps = 0 ends in a division by zero", "a cosine from the first step on",
        "No warm-up is a usual choice.", "Divide by warmup_steps only inside the branch step < warmup_steps.",
    ),
    Misconception(
        "integer_division", "the climb is a step, not a slope", "equal increments at every step", "// drops what is behind the point.",
        "Use / for the share of the climb.",
    ),
    Misconception(
        "no_decay", "after the climb the learning rate stays at the peak", "half a cosine down to final_lr",
        "Small steps at the end let the loss settle.", "Add the cosine for the steps after the climb.",
    ),
    Misconception(
        "linear_decay", "the way down is a straight line", "half a cosine", "It is a schedule too, but not this one.",
        "Use cos(pi * progress), which runs from 1 to -1.",
    ),
    Misconception(
        "quarter_period", "the cosine runs through a quarter of its period", "half a period: steep in the middle, flat at both ends",
        "A quarter is steepest at the end, where the steps should hardly change.", "cos(pi * progress), moved and scaled into 0 .. 1.",
    ),
    Misconception(
        "full_period", "the cosine comes back up", "half a period", "The run would end at the peak.", "Use pi, not 2 pi.",
    ),
    Misconception(
        "not_halved", "the cosine starts at twice the peak", "never above peak_lr", "1 + cos runs from 2 to 0.", "Take half of it.",
    ),
    Misconception(
        "final_ignored", "the run ends at 0, whatever final_lr is", "final_lr at the last step", "The argument is there to be used.",
        "The cosine spans peak_lr - final_lr and stands on final_lr.",
    ),
    Misconception(
        "final_added", "final_lr is added on top", "the cosine between peak_lr and final_lr",
        "The curve would jump above the peak after the climb.", "The cosine spans peak_lr - final_lr only.",
    ),
    Misconception(
        "final_as_floor", "final_lr cuts the curve off", "a cosine that ends at final_lr",
        "The curve falls towards 0 and is cut; the last steps are all alike.", "Scale the cosine to the span between both rates.",
    ),
)  # fmt: skip

# --- weight_decay_groups ------------------------------------------------------------------------


def groups_cases(g: torch.Generator) -> list[Case]:
    """Draw models and a weight decay."""

    def case(kind, words, **rest):
        decay = draw(g, 6, 30) / 100
        args = {"model": Network(kind, 2 * draw(g, 2, 4)), "weight_decay": decay}
        return Case(f"{words}, weight_decay={decay:g}", args, driver="groups", **rest)

    return [
        case("encoder", "a model with the names of a ViT"),
        case("nested", "a ViT inside another model", part="nested parts"),
        case("other_names", "a model with other names", part="other names"),
    ]  # fmt: skip


def faulty_groups(mistakes: frozenset[str]):
    """Sort with the named mistakes made."""

    def is_spared(name, parameter):
        last = name.split(".")[-1]
        if "tokens_decay" in mistakes:
            token = False
        elif "top_level_tokens" in mistakes:
            token = name in ("cls_token", "pos_embed")
        else:
            token = last in ("cls_token", "pos_embed")
        if "by_name" in mistakes:
            return "norm" in name or "bias" in name or token
        if "norms_decay" in mistakes:
            return last.endswith("bias") or token
        if "biases_decay" in mistakes:
            return (parameter.ndim < 2 and not last.endswith("bias")) or token
        if "kernels_spared" in mistakes:
            return parameter.ndim != 2 or token
        return parameter.ndim < 2 or token

    def weight_decay_groups(model, weight_decay):
        if "fixed_decay" in mistakes:
            weight_decay = 0.05
        decay, spared = [], []
        for name, parameter in model.named_parameters():
            last = name.split(".")[-1]
            if "root_left_out" in mistakes and "." not in name:
                continue
            if "tokens_left_out" in mistakes and last in ("cls_token", "pos_embed"):
                continue
            group = spared if is_spared(name, parameter) else decay
            if "copies" in mistakes:
                parameter = nn.Parameter(parameter.detach().clone())
            if "names" in mistakes:
                parameter = name
            group.append(parameter)
        if "swapped" in mistakes:
            decay, spared = spared, decay
        if "in_both" in mistakes:
            spared = spared + decay
        if "everything_decays" in mistakes:
            decay, spared = decay + spared, []
        if "nothing_decays" in mistakes:
            decay, spared = [], decay + spared
        if "spared_left_out" in mistakes:
            return [{"params": decay, "weight_decay": weight_decay}]
        second = {"params": spared, "weight_decay": 0.0}
        if "default_left" in mistakes:
            del second["weight_decay"]
        return [{"params": decay, "weight_decay": weight_decay}, second]

    return weight_decay_groups


GROUPS_BANK = (
    Misconception(
        "everything_decays", "every parameter decays", "biases, norms, cls_token and pos_embed without decay",
        "Shrinking a norm's scale or a bias regularises nothing; it only pulls towards 0.", "Sort by ndim and by name.",
    ),
    Misconception(
        "nothing_decays", "no parameter decays", "matrices and kernels with weight_decay", "There would be no regularisation at all.",
        "Look at the condition that sends a parameter to the first group.",
    ),
    Misconception(
        "swapped", "the two groups have each other's weight_decay", "matrices and kernels decay, the rest does not",
        "What should be left alone is shrunk.", "Look at which list gets 0.",
    ),
    Misconception(
        "tokens_decay", "cls_token and pos_embed decay", "both without decay",
        "They have three axes, so ndim alone takes them for kernels.", "Ask for the name as well.",
    ),
    Misconception(
        "top_level_tokens", "a cls_token or pos_embed inside a part of the model decays", "both without decay, wherever they are",
        "Its full name is encoder.cls_token.", 'Compare the last piece: name.split(".")[-1].',
    ),
    Misconception(
        "norms_decay", "the scales of the norms decay", "norms without decay",
        "A norm's weight is a vector of scales around 1, not a matrix.", "A norm's weight has one axis, as a bias has.",
    ),
    Misconception(
        "biases_decay", "biases decay", "biases without decay", "A bias is an offset, and 0 is no better than any other.",
        "A bias has one axis: ask for ndim.",
    ),
    Misconception(
        "by_name", "norms and biases are told by their names", "the same sorting whatever the parts are called",
        "Not every norm is called norm, and a matrix may stand in a part whose name contains norm or bias.",
        "ndim tells a norm's scale from a matrix without reading names.",
    ),
    Misconception(
        "kernels_spared", "convolution kernels do not decay", "matrices and kernels decay",
        "A kernel of four axes is a matrix too: (D, C*P*P).", "Ask for ndim < 2, not for ndim == 2.",
    ),
    Misconception(
        "fixed_decay", "weight_decay is not the one given", "the argument weight_decay", "Whoever calls chooses it.",
        "Look for a number in place of the argument.",
    ),
    Misconception(
        "default_left", "the second group does not say weight_decay", "weight_decay 0 in the second group",
        "A group that says nothing gets the optimizer's default, which for AdamW is 0.01.", 'Add "weight_decay": 0.0.',
    ),
    Misconception(
        "spared_left_out", "what does not decay is not returned", "two groups that hold every parameter",
        "An optimizer trains only what it is given: biases and norms would stay as they began.", "Return both groups.",
    ),
    Misconception(
        "tokens_left_out", "cls_token and pos_embed are in no group", "every parameter in exactly one group",
        "They would never be trained.", "Send them to the second list rather than skipping them.",
    ),
    Misconception(
        "root_left_out", "parameters that belong to the model itself are in no group", "every parameter in exactly one group",
        "model.children() gives the parts; what is registered on the model directly is in none of them.", "Use model.named_parameters().",
    ),
    Misconception(
        "in_both", "matrices and kernels are in both groups", "every parameter in exactly one group",
        "An optimizer refuses a parameter that comes twice.", "One if, one else: each parameter goes to one list.",
    ),
    Misconception(
        "copies", "the groups hold copies of the parameters", "the model's own parameters",
        "The optimizer would train the copies and leave the model as it is.", "Append the parameter itself, without clone or detach.",
    ),
    Misconception(
        "names", "the groups hold names", "parameters in params", "An optimizer needs the tensors.",
        "named_parameters() gives pairs: append the second of each.",
    ),
)  # fmt: skip

# --- random_crop_flip ---------------------------------------------------------------------------


def crop_cases(g: torch.Generator) -> list[Case]:
    """Draw images of random pixels, so that windows can be told apart.

    "draws" keeps sides above 2 * padding + 1: in smaller images a reflected window can be another one's mirror image.
    """

    def case(sizes, C, H, W, padding, dtype=torch.uint8, note="", **rest):
        B = sum(sizes)
        pixels = torch.randint(0, 256, (B, C, H, W), generator=g, dtype=torch.uint8)
        images = pixels if dtype == torch.uint8 else (pixels.double() / 256).to(dtype)
        words = str(dtype).removeprefix("torch.")
        batches = f"{len(sizes)} batches, " if len(sizes) > 1 else ""
        name = f"{batches}{B} {words} images ({C}, {H}, {W}), padding {padding}{note}"
        args = {
            "images": images,
            "padding": padding,
            "generator": CpuGenerator(draw(g, 0, 10**6)),
        }
        rest["extra"] = {"sizes": sizes, **rest.get("extra", {})}
        return Case(name, args, **{"driver": "random_images"} | rest)

    H, W = distinct(g, 2, 5, 7)
    B, C, p = draw(g, 12, 16), draw(g, 2, 4), draw(g, 2, 4)
    few = [B] * 4
    sizes = {"part": "other sizes"}
    return [
        case(few, C, H, W, p),
        case(few, C, W, H, p, torch.float32),
        case([1200, *[3] * 20], 1, H + 1, W + 1, 2, part="draws", extra={"draws": True}),
        case([1] * 40, C, H, W, p, note=", one by one", **sizes),
        case(few, C, W, W, p, note=", square", **sizes),
        case(few, 1, H, W, p, torch.float64, **sizes),
        case(few, C, H, W, 0, note=", which is none", **sizes),
        case(few, C, W, H, min(H, W) - 1, note=", the widest", **sizes),
        case(
            [40], C, H, W, p, driver="repeated_draws", part="generator",
            extra={"seed": draw(g, 0, 10**6)}, note=", drawn again",
        ),
        case(
            [4], C, H, W, p, part="any device", on_accelerator=True,
            note=", on an accelerator, with a generator on the CPU",
        ),
    ]  # fmt: skip


BORDERS = {  # id of the mistake -> what ``crops`` calls it
    "zero_border": "zeros",
    "edge_border": "the edge repeated",
    "wrapped_border": "the opposite side",
}


def faulty_crop(mistakes: frozenset[str]):
    """Crop and mirror with the named mistakes made."""

    def places(B, p, draw):
        if "no_crop" in mistakes or "corner_only" in mistakes:
            return torch.full((B,), p if "no_crop" in mistakes else 0)
        count = 1 if "one_place" in mistakes else B
        if "rounded_draws" in mistakes:
            place = (torch.rand(count, **draw) * 2 * p).round().long()
        else:
            most = 2 * p if "last_place_never" in mistakes else 2 * p + 1
            most = p + 1 if "half_the_border" in mistakes else most
            least = 1 if "first_place_never" in mistakes else 0
            place = torch.randint(least, most, (count,), **draw)
        return place.expand(B)

    def random_crop_flip(images, padding, generator):
        B, C, H, W = images.shape
        p = padding
        if "global_draws" in mistakes:
            generator = None
        if "own_generator" in mistakes:
            generator = torch.Generator().manual_seed(0)
        if "generator_copied" in mistakes:
            state, generator = generator.get_state(), torch.Generator()
            generator.set_state(state)
        draw = {"generator": generator}
        border = next((BORDERS[id_] for id_ in BORDERS if id_ in mistakes), "reflected")
        framed = crops.padded(images, p, border)
        top, left = places(B, p, draw), places(B, p, draw)
        if "top_is_left" in mistakes:
            left = top
        coin = torch.rand(1 if "one_coin" in mistakes else B, **draw).expand(B)
        flip = coin < (0.25 if "unfair_coin" in mistakes else 0.5)
        if "never_mirrored" in mistakes:
            flip = torch.zeros_like(flip)
        if "always_mirrored" in mistakes:
            flip = torch.ones_like(flip)
        if "every_second_mirrored" in mistakes:
            flip = torch.arange(B) % 2 == 1
        width = H if "square_window" in mistakes else W
        if "border_left_on" in mistakes:
            H, width, top, left = H + 2 * p, W + 2 * p, top * 0, left * 0
        rows, columns = torch.arange(H).expand(B, H), torch.arange(width).expand(B, width)
        if "upside_down" in mistakes:
            rows = torch.where(flip[:, None], rows.flip(1), rows)
        else:
            columns = torch.where(flip[:, None], columns.flip(1), columns)
        rows, columns = rows + top[:, None], columns + left[:, None]
        batch = torch.arange(B)[:, None, None]
        out = framed[batch, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        if "float_result" in mistakes and not out.is_floating_point():
            out = out.float()
        return out

    return random_crop_flip


def _draws_where_images_are():
    def random_crop_flip(images, padding, generator):
        draw = {"generator": generator, "device": images.device}
        top = torch.randint(0, 2 * padding + 1, (len(images),), **draw)
        assert len(top) == len(images)
        return reference.random_crop_flip(images, padding, generator)

    return random_crop_flip


def _spoils_images():
    def random_crop_flip(images, padding, generator):
        images.copy_(reference.random_crop_flip(images, padding, generator))
        return images.clone()

    return random_crop_flip


CROP_BANK = (
    Misconception(
        "zero_border", "the border is black", "a reflected border", "A black edge tells the model where the image was; it never occurs in a test image.",
        "Reflect: the pixel before the first is the second.",
    ),
    Misconception(
        "edge_border", "the border repeats the edge", "a reflected border", "A smear of equal pixels is no texture.",
        "Reflect: the pixel before the first is the second, not the first.",
    ),
    Misconception(
        "wrapped_border", "what leaves on one side comes in on the other", "a reflected border",
        "torch.roll and % wrap around: the sky would stand below the grass.", "Reflect indices that are off either end.",
    ),
    Misconception(
        "upside_down", "images are mirrored top to bottom", "mirrored left to right", "A cat upside down is rare; a cat that looks the other way is not.",
        "The last axis is the width.",
    ),
    Misconception(
        "never_mirrored", "no image is mirrored", "every second image on average", "Half of the views are missing.", "Look at the coin and at what it decides.",
    ),
    Misconception(
        "always_mirrored", "every image is mirrored", "every second image on average", "Then no image is seen as it is.", "Look at the comparison with 0.5.",
    ),
    Misconception(
        "one_coin", "one coin decides for the whole batch", "a coin for every image", "A batch would be all mirrored or not at all.",
        "Draw B coins, and let each image follow its own.",
    ),
    Misconception(
        "unfair_coin", "the coin is not fair", "heads with probability 1/2", "The text asks for a fair coin.", "torch.rand is uniform in 0 .. 1: compare with 0.5.",
    ),
    Misconception(
        "no_crop", "the window never moves", "a top and a left from 0 to 2 * padding", "Only the mirror is left.", "Draw the place of the window.",
    ),
    Misconception(
        "corner_only", "the window stays in the corner of the padded image", "a top and a left from 0 to 2 * padding",
        "Every image would be shifted alike.", "Draw the place of the window.",
    ),
    Misconception(
        "one_place", "the whole batch shares one window", "a top and a left for every image", "Images of one batch are then shifted all alike.",
        "Draw B tops and B lefts.",
    ),
    Misconception(
        "top_is_left", "the window moves along the diagonal only", "top and left drawn apart", "Most places are never met.", "Draw twice.",
    ),
    Misconception(
        "last_place_never", "the last place is never drawn", "places 0 to 2 * padding, both included", "torch.randint leaves out its upper end.",
        "high = 2 * padding + 1.",
    ),
    Misconception(
        "first_place_never", "the first place is never drawn", "places 0 to 2 * padding, both included", "Places count from 0.", "low = 0.",
    ),
    Misconception(
        "half_the_border", "places run from 0 to padding only", "places 0 to 2 * padding", "padding is added on both sides, so there are 2 * padding + 1 places.",
        "Draw up to twice the padding.",
    ),
    Misconception(
        "rounded_draws", "the outermost places are drawn half as often", "all places equally often", "Rounding gives both ends half an interval.",
        "Use randint.",
    ),
    Misconception(
        "global_draws", "draws do not come from generator", "every draw from generator", "A run could not be repeated.", "Give every draw generator=generator.",
    ),
    Misconception(
        "own_generator", "a generator of its own decides", "every draw from the generator given", "Every call would draw the same.",
        "Use the argument, and leave its seed alone.",
    ),
    Misconception(
        "generator_copied", "a copy of the generator decides", "every draw from the generator given",
        "The generator never moves on, so that every batch gets the same draws.", "Give the generator itself to the functions that draw.",
    ),
    Misconception(
        "every_second_mirrored", "every second image of a batch is mirrored", "a coin for every image",
        "Half of the images are mirrored, but always those in the same places.", "Draw the coins from the generator.",
    ),
    Misconception(
        "border_left_on", "the padded image comes back", "images of the old size", "The model expects H x W.", "Cut a window of H x W out of the padded image.",
    ),
    Misconception(
        "square_window", "the window is square", "a window of H x W", "It works on square images only.", "Take the columns from W.",
    ),
    Misconception(
        "float_result", "uint8 goes in, float comes out", "the dtype of the images", "The images of a whole data set stay uint8 to fit into memory.",
        "Index, which works for every dtype, or turn back at the end.",
    ),
    Misconception(
        "modifies_input", "an input is modified in place", "images left as they were", "The next epoch would start from shifted images.",
        "Write into a new tensor.", part="unchanged", build=_spoils_images,
    ),
    Misconception(
        "generator_device", "draws are made where the images are", "draws made where the generator is", "A generator draws on its own device only.",
        "Draw with device=generator.device and move the result.", part="any device", build=_draws_where_images_are,
    ),
)  # fmt: skip

# --- train_one_epoch ----------------------------------------------------------------------------


def _weights(g: torch.Generator, pixels: int, hidden: int, K: int, norm=False, dtype=torch.float32):
    """Draw the state of a ``drivers.WatchedClassifier``."""
    state = {
        "body.0.weight": normal(g, hidden, pixels) / pixels**0.5,
        "head.weight": 1.5 * normal(g, K, hidden) / hidden**0.5,
    }
    if norm:
        state |= {
            "body.2.weight": 1 + 0.3 * normal(g, hidden),
            "body.2.bias": 0.3 * normal(g, hidden),
            "body.2.running_mean": 0.3 * normal(g, hidden),
            "body.2.running_var": 0.5 + torch.rand(hidden, generator=g),
        }
    state = {name: value.to(dtype) for name, value in state.items()}
    if norm:
        state["body.2.num_batches_tracked"] = torch.tensor(7)
    return state


def _batches(g: torch.Generator, state: dict, sizes, shape, scales=(2.0,)):
    """Draw batches: the first is all right, the last all wrong, so that means differ however they are weighted."""
    K, dtype = len(state["head.weight"]), state["head.weight"].dtype
    batches = []
    for i, size in enumerate(sizes):
        images = scales[i % len(scales)] * normal(g, size, *shape, dtype=dtype)
        hidden = images.flatten(1) @ state["body.0.weight"].T
        if "body.2.weight" in state:
            scale = (state["body.2.running_var"] + 1e-5).rsqrt() * state["body.2.weight"]
            hidden = (0.5 * hidden - state["body.2.running_mean"]) * scale + state["body.2.bias"]
        best = (hidden @ state["head.weight"].T).argmax(dim=-1)
        shift = torch.randint(1, K, (size,), generator=g)
        if i == 0:
            shift = torch.zeros_like(shift)
        elif i < len(sizes) - 1:
            shift = shift * torch.randint(0, 2, (size,), generator=g)
        batches.append((images, (best + shift) % K))
    return batches


def epoch_cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers and batches; each part of the contract shows in a case that shows little else."""

    def case(words, sizes, keep, lr=0.0, factor=1.0, training=True, once=False, **rest):
        dtype = rest.pop("dtype", torch.float32)
        state = _weights(g, C * H * W, hidden, K, dtype=dtype)
        scales = rest.pop("scales", (2.0,))
        batches = _batches(g, state, sizes, (C, H, W), scales)
        args = {"model": None, "batches": batches, "optimizer": lr, "scheduler": factor}
        extra = {"keep": keep, "training": training, "once": once}
        rest.setdefault("outputs", ("mean_loss", "accuracy"))
        return Case(
            f"{words} (batches of {', '.join(map(str, sizes))})", args, driver="epoch",
            state=state, extra=extra, number=True, rtol=1e-4, atol=1e-5, **rest,
        )  # fmt: skip

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    results, learning = (
        ("results",),
        {"part": "learning", "scales": (0.1, 3.0, 0.2, 3.0), "lr": 0.5},
    )
    return [
        case("learning rate 0", [five, four, three], results),
        case("batches that can be read once", [four, five, 1], results, once=True, part="any iterable"),
        case("learning rate 0.5", [four, three, five, three], ("learning",), **learning),
        case("learning rate 0.5, float64", [four, five, three], ("learning",), dtype=torch.float64, **learning),
        case("results while it learns", [four, three, five], results, lr=0.5, part="before the update"),
        case("a model that comes in eval mode", [four, three], ("mode",), training=False, part="train mode"),
        case("the order of steps", [four, three, three], ("order",), factor=0.5, part="order"),
        case("one batch", [four], results, part="other sizes"),
    ]  # fmt: skip


def faulty_epoch(mistakes: frozenset[str]):
    """Learn with the named mistakes made."""
    price = _faulty_price(mistakes)

    def train_one_epoch(model, batches, optimizer, scheduler):
        if "eval_mode" in mistakes:
            model.eval()
        elif "mode_untouched" in mistakes:
            pass
        elif "root_mode_only" in mistakes:
            model.training = True
        else:
            model.train()
        if "needs_len" in mistakes:
            len(batches)
        tally = _Tally(mistakes)
        if "read_twice" in mistakes:
            for _ in batches:
                pass
        for images, labels in batches:
            if tally.drops(labels):
                break
            if "no_zero_grad" not in mistakes:
                optimizer.zero_grad()
            logits = model(images)
            loss = price(logits, labels)
            loss.backward()
            _clip(list(model.parameters()), mistakes)
            if "scheduler_first" in mistakes:
                scheduler.step()
            if "no_step" not in mistakes:
                optimizer.step()
            if not mistakes & {"scheduler_first", "scheduler_once", "no_scheduler"}:
                scheduler.step()
            if "measured_after" in mistakes:
                with torch.no_grad():
                    logits = model(images)
                    loss = price(logits, labels)
            tally.add(logits, labels, loss)
            if "one_batch_only" in mistakes:
                break
        if "scheduler_once" in mistakes:
            scheduler.step()
        return tally.results()

    return train_one_epoch


def _faulty_price(mistakes: frozenset[str]):
    def price(logits, labels):
        if "softmax_first" in mistakes:
            logits = logits.softmax(dim=-1)
        return F.cross_entropy(
            logits, labels, label_smoothing=0.1 if "smoothed_loss" in mistakes else 0.0
        )

    return price


def _clip(parameters: list, mistakes: frozenset[str]) -> None:
    """Clip gradients, with the named mistakes made."""
    if "not_clipped" in mistakes:
        return
    if "clipped_by_value" in mistakes:
        nn.utils.clip_grad_value_(parameters, 1.0)
        return
    if "clipped_one_by_one" in mistakes:
        for parameter in parameters:
            nn.utils.clip_grad_norm_([parameter], 1.0)
        return
    if "always_norm_one" in mistakes:
        norm = torch.stack([p.grad.norm() for p in parameters]).norm()
        for parameter in parameters:
            parameter.grad /= norm
        return
    nn.utils.clip_grad_norm_(parameters, 5.0 if "another_norm" in mistakes else 1.0)


class _Tally:
    """Sums of loss and hits, with the named mistakes made."""

    def __init__(self, mistakes: frozenset[str]):
        self.mistakes = mistakes
        self.loss, self.hits, self.seen, self.batches, self.size = 0.0, 0.0, 0, 0, 0

    def drops(self, labels) -> bool:
        """Tell whether a batch smaller than the first is left out."""
        self.size = self.size or len(labels)
        return "last_batch_dropped" in self.mistakes and len(labels) < self.size

    def add(self, logits, labels, loss) -> None:
        """Count a batch."""
        if "last_batch_only" in self.mistakes:
            self.loss, self.hits, self.seen, self.batches = 0.0, 0.0, 0, 0
        n = len(labels)
        hits = (logits.argmax(dim=-1) == labels).sum().item()
        self.loss += loss.item() * (1 if "loss_unweighted" in self.mistakes else n)
        self.hits += hits / n if "accuracy_unweighted" in self.mistakes else hits
        self.seen += n
        self.batches += 1

    def results(self):
        """Give (mean loss, accuracy)."""
        loss = self.loss / (self.batches if "loss_unweighted" in self.mistakes else self.seen)
        accuracy = self.hits / (
            self.batches if "accuracy_unweighted" in self.mistakes else self.seen
        )
        if "loss_summed" in self.mistakes:
            loss = self.loss
        if "hits_counted" in self.mistakes:
            accuracy = self.hits
        if "percent" in self.mistakes:
            accuracy = 100 * accuracy
        if "loss_alone" in self.mistakes:
            return loss
        return (accuracy, loss) if "swapped_results" in self.mistakes else (loss, accuracy)


def _own_results(case: Case, seen: Observation) -> str:
    values = [seen.arrays.get(name) for name in case.outputs]
    if any(value is None for value in values):
        return "other results"
    return "mean loss {:.4g}, accuracy {:.4g}".format(*map(float, values))


RESULTS_BANK = (  # of train_one_epoch and evaluate alike
    Misconception(
        "loss_unweighted", "the mean loss is a mean of batch means", "every image counts the same",
        "An image of a short last batch would weigh more than any other.", "Multiply each batch's loss by its number of images, and divide by all images.",
        evidence=_own_results,
    ),
    Misconception(
        "accuracy_unweighted", "the accuracy is a mean of batch accuracies", "every image counts the same",
        "An image of a short last batch would weigh more than any other.", "Count hits and images; divide once, at the end.", evidence=_own_results,
    ),
    Misconception(
        "loss_summed", "the losses are added, not averaged", "the mean over all images", "It would grow with the data set.",
        "Divide by the images seen.", evidence=_own_results,
    ),
    Misconception(
        "hits_counted", "the accuracy is a count", "an accuracy in [0, 1]", "Counts of data sets of two sizes can not be compared.",
        "Divide by the images seen.", evidence=_own_results,
    ),
    Misconception(
        "percent", "the accuracy is in percent", "an accuracy in [0, 1]", "The course keeps fractions and shows percent.", "Leave out the 100.",
        evidence=_own_results,
    ),
    Misconception(
        "swapped_results", "accuracy and loss have changed places", "(mean_loss, accuracy)", "Callers unpack them in this order.",
        "Turn the pair round.", evidence=_own_results,
    ),
    Misconception(
        "loss_alone", "only the loss is returned", "(mean_loss, accuracy)", "Callers unpack two numbers.", "Count the hits too.",
    ),
    Misconception(
        "last_batch_only", "only the last batch is reported", "a mean over all batches", "One batch is a noisy sample.",
        "Start the sums before the loop, and add inside.", evidence=_own_results,
    ),
    Misconception(
        "one_batch_only", "the loop ends after the first batch", "every batch once", "The other batches are never seen.",
        "Look for a return or break inside the loop.", evidence=_own_results,
    ),
    Misconception(
        "last_batch_dropped", "a short last batch is left out", "every batch, of whatever size", "Its images would never count.",
        "Take every batch that comes.", evidence=_own_results,
    ),
    Misconception(
        "softmax_first", "softmax is applied before cross-entropy", "cross-entropy of the logits", "Cross-entropy applies the softmax itself; twice flattens it.",
        "Hand the logits over as they are.", evidence=_own_results,
    ),
    Misconception(
        "smoothed_loss", "the loss is smoothed", "mean cross-entropy without smoothing", "Smoothed and plain losses can not be compared.",
        "Leave label_smoothing at its default.", evidence=_own_results,
    ),
    Misconception(
        "needs_len", "the batches must have a length", "any iterable, a generator too", "A generator does not know how many batches it will give.",
        "Count while you go.",
    ),
    Misconception(
        "read_twice", "the batches are read twice", "any iterable, read once", "A generator is empty after its first reading.", "Do all the work in one loop.",
    ),
)  # fmt: skip

EPOCH_BANK = (
    *RESULTS_BANK,
    Misconception(
        "no_zero_grad", "gradients pile up from batch to batch", "gradients of this batch alone",
        "backward() adds to .grad; what the batches before left there is still in it.", "Clear the gradients once a batch.",
    ),
    Misconception(
        "not_clipped", "the optimizer steps on unclipped gradients", "a gradient norm of at most 1 at every step",
        "One odd batch can throw the weights far off.", "Clip between backward() and step().",
    ),
    Misconception(
        "clipped_by_value", "each gradient entry is clipped by itself", "the norm of all gradients together clipped to 1",
        "Clipping entries changes the direction of the step.", "Use clip_grad_norm_.",
    ),
    Misconception(
        "clipped_one_by_one", "each parameter's gradient is clipped by itself", "the norm of all gradients together clipped to 1",
        "The proportions between the layers would change.", "Give clip_grad_norm_ all parameters at once.",
    ),
    Misconception(
        "always_norm_one", "small gradients are blown up to norm 1", "gradients below norm 1 left as they are",
        "Close to the minimum the steps must become small.", "Scale only where the norm is above 1.",
    ),
    Misconception(
        "another_norm", "gradients are clipped to another norm", "a gradient norm of at most 1", "The text asks for 1.", "Look at max_norm.",
    ),
    Misconception(
        "no_step", "the optimizer never steps", "one optimizer step a batch", "Nothing is learned.", "Call optimizer.step() after clipping.",
    ),
    Misconception(
        "measured_after", "loss and accuracy are measured after the update", "measured before the update each batch causes",
        "On a batch just learned a model looks better than it is.", "Use the logits that gave the gradient.", evidence=_own_results,
    ),
    Misconception(
        "scheduler_first", "the scheduler steps before the optimizer", "optimizer first, scheduler second",
        "The first learning rate of the schedule would be skipped.", "Swap the two lines.",
    ),
    Misconception(
        "scheduler_once", "the scheduler steps once an epoch", "one scheduler step a batch", "The schedule counts batches; it would hardly begin.",
        "Move scheduler.step() into the loop.",
    ),
    Misconception(
        "no_scheduler", "the scheduler never steps", "one scheduler step a batch", "The learning rate would stay where the climb begins.",
        "Call scheduler.step() after optimizer.step().",
    ),
    Misconception(
        "mode_untouched", "the model keeps the mode it came in", "train mode", "After an evaluation it would learn in eval mode, without dropout.",
        "Call model.train() first.",
    ),
    Misconception(
        "eval_mode", "the model learns in eval mode", "train mode", "Dropout would be off, and running statistics would stay still.", "Call model.train(), not model.eval().",
    ),
    Misconception(
        "root_mode_only", "only the model itself is in train mode, its parts are not", "train mode in every part",
        "The attribute training of a module says nothing about its parts.", "Call model.train(), which goes through all of them.",
    ),
)  # fmt: skip

# --- evaluate -----------------------------------------------------------------------------------


def evaluation_cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers with running statistics, in all modes."""

    def case(words, sizes, keep, training=False, other_mode=(), once=False, **rest):
        dtype = rest.pop("dtype", torch.float32)
        state = _weights(g, C * H * W, hidden, K, norm=True, dtype=dtype)
        batches = _batches(g, state, sizes, (C, H, W))
        extra = {"keep": keep, "training": training, "other_mode": other_mode, "once": once}
        return Case(
            f"{words} (batches of {', '.join(map(str, sizes))})",
            {"model": None, "batches": batches}, driver="evaluation", state=state, extra=extra,
            number=True, outputs=("mean_loss", "accuracy"), rtol=1e-4, atol=1e-5, **rest,
        )  # fmt: skip

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    results, modes = ("results",), ("modes",)
    return [
        case("a model in eval mode", [five, four, three], results),
        case("batches that can be read once", [four, five, 1], results, once=True, part="any iterable"),
        case("a model in train mode", [four, three, five], ("eval",), training=True, part="eval mode"),
        case("a model in train mode", [four, three], modes, training=True, part="modes restored"),
        case("a model in eval mode", [four, three], modes, part="modes restored"),
        case(
            "a model in train mode with a part in eval mode", [four, three], modes, training=True,
            other_mode=("body.2",), part="modes restored",
        ),
        case(
            "a model in eval mode with a part in train mode", [four, three], modes,
            other_mode=("body", "body.1"), part="modes restored",
        ),
        case("gradients", [four, three], ("gradients",), part="no gradients"),
        case("one batch, float64", [four], results, dtype=torch.float64, part="other sizes"),
        case("one image", [1], results, part="other sizes"),
    ]  # fmt: skip


def faulty_evaluation(mistakes: frozenset[str]):
    """Measure with the named mistakes made."""
    price = _faulty_price(mistakes)

    def evaluate(model, batches):
        modes = {module: module.training for module in model.modules()}
        if "no_eval" not in mistakes:
            model.eval()
        if "train_mode" in mistakes:
            model.train()
        if "needs_len" in mistakes:
            len(batches)
        tally = _Tally(mistakes)
        if "read_twice" in mistakes:
            for _ in batches:
                pass
        with torch.set_grad_enabled("graph_built" in mistakes):
            for images, labels in batches:
                if tally.drops(labels):
                    break
                logits = model(images)
                tally.add(logits, labels, price(logits, labels))
                if "one_batch_only" in mistakes:
                    break
        if "gradients_left_off" in mistakes:
            torch.set_grad_enabled(False)
        if "left_in_eval" in mistakes:
            return tally.results()
        if "always_train" in mistakes:
            model.train()
        elif "root_mode_only" in mistakes:
            model.train(modes[model])
        else:
            for module, training in modes.items():
                module.training = training
        return tally.results()

    return evaluate


EVALUATION_BANK = (
    *RESULTS_BANK,
    Misconception(
        "no_eval", "the model keeps the mode it came in", "eval mode", "Dropout would hide parts of the model, and running statistics would move.",
        "Call model.eval() first.",
    ),
    Misconception(
        "train_mode", "the model is measured in train mode", "eval mode", "Dropout would hide parts of the model, and running statistics would move.",
        "Call model.eval(), not model.train().",
    ),
    Misconception(
        "left_in_eval", "the model stays in eval mode", "every part in the mode it was in before", "The next epoch would train without dropout.",
        "Remember the modes before model.eval(), and put them back.",
    ),
    Misconception(
        "always_train", "the model is in train mode afterwards, whatever it was before", "every part in the mode it was in before",
        "A frozen part, or a model that only predicts, would wake up.", "Remember the modes before model.eval(), and put them back.",
    ),
    Misconception(
        "root_mode_only", "the model's own mode is restored, and forced on all its parts", "every part in the mode it was in before",
        "model.train(mode) sets every part alike; a frozen part would wake up.", "Remember the mode of each of model.modules().",
    ),
    Misconception(
        "graph_built", "a graph for gradients is built", "no gradients", "It costs memory for every batch and serves nobody.",
        "Work under torch.no_grad().",
    ),
    Misconception(
        "gradients_left_off", "gradients stay switched off afterwards", "gradients possible again", "The next loss.backward() would fail.",
        "Use torch.no_grad() as a context or decorator, which ends by itself.",
    ),
)  # fmt: skip

# --- all of them --------------------------------------------------------------------------------

_SHARED_PROVES = {
    "any iterable": "batches may come from a generator, and be of any size",
}

CHECKERS = {
    "cross_entropy": Checker(
        "cross_entropy", reference.cross_entropy, cross_entropy_cases, faulty_cross_entropy, CROSS_ENTROPY_BANK,
        forbidden=frozenset(
            "cross_entropy cross_entropy_loss cross_entropy_loss.default aten.cross_entropy_loss linear_cross_entropy".split()
        ),
        forbidden_words="F.cross_entropy and nn.CrossEntropyLoss",
        proves={
            "values": "the mean of minus the log-probability of the label",
            "label smoothing": "with the target (1-s) on the label plus s/K on every class",
            "other sizes": "also for one image, two classes, and float64",
            "large scores": "finite and right for scores of 10,000",
        },
    ),
    "warmup_cosine": Checker(
        "warmup_cosine", reference.warmup_cosine, warmup_cosine_cases, faulty_warmup_cosine, WARMUP_COSINE_BANK,
        proves={
            "values": "every step of a run, the peak once and final_lr at the end",
            "no warm-up": "a cosine from the first step where warmup_steps is 0",
            "final rate": "ends exactly at final_lr",
            "other runs": "also for long runs, a climb of one step, a cosine of one step, and whole numbers",
        },
        picture=draw_schedule,
    ),
    "weight_decay_groups": Checker(
        "weight_decay_groups", reference.weight_decay_groups, groups_cases, faulty_groups, GROUPS_BANK,
        proves={
            "values": "two groups, every parameter once, with its weight decay",
            "nested parts": "cls_token and pos_embed are found inside other parts",
            "other names": "norms and matrices are told apart whatever they are called",
        },
    ),
    "random_crop_flip": Checker(
        "random_crop_flip", reference.random_crop_flip, crop_cases, faulty_crop, CROP_BANK,
        proves={
            "values": "every output is a window of its reflected image, mirrored or not; images stay unchanged",
            "draws": "every place and both sides of the coin, drawn for each image by itself",
            "other sizes": "also for one image, squares, no padding, the widest padding and float64",
            "generator": "the generator decides, and nothing else",
            "any device": "the generator may live on the CPU while the images do not",
        },
    ),
    "train_one_epoch": Checker(
        "train_one_epoch", reference.train_one_epoch, epoch_cases, faulty_epoch, EPOCH_BANK,
        proves=_SHARED_PROVES | {
            "values": "mean loss and accuracy over all images, each counting the same",
            "learning": "every step on fresh gradients, clipped to norm 1",
            "before the update": "measured before the update each batch causes",
            "train mode": "learns in train mode, whatever the mode before",
            "order": "optimizer, then scheduler, once a batch",
            "other sizes": "also for one batch",
        },
    ),
    "evaluate": Checker(
        "evaluate", reference.evaluate, evaluation_cases, faulty_evaluation, EVALUATION_BANK,
        proves=_SHARED_PROVES | {
            "values": "mean loss and accuracy over all images, each counting the same",
            "eval mode": "measured in eval mode, parameters and running statistics untouched",
            "modes restored": "every part back in its mode, frozen parts too",
            "no gradients": "no graph is built, and gradients work again afterwards",
            "other sizes": "also for one batch, one image, and float64",
        },
    ),
    "smoothing_floor": ValueChecker(
        "smoothing_floor", reference.smoothing_floor,
        (
            ValueMistake("zero", 0.0, "a smoothed target can not be met for free", "The loss compares with the target, and a target that is spread has an entropy of its own.",
                         "Ask what the loss charges where the model gives exactly the target."),
            ValueMistake("label_only", -math.log(0.91), "only the label is priced", "The other classes have a share of the target too.", "Weigh each class's price with its target, and add all ten."),
            ValueMistake("label_weighted_only", -0.91 * math.log(0.91), "only the label is priced", "The other classes have a share of the target too.", "Add the nine others."),
            ValueMistake("one_minus_s", -math.log(0.9), "only 1 - s is priced", "The label also gets its share s/K, and the other classes have theirs.", "The target has 0.91 once and 0.01 nine times."),
            ValueMistake("shared_by_others", -(0.9 * math.log(0.9) + 0.1 * math.log(0.1 / 9)), "s is shared by the nine others only", "s/K goes to every class, the label included.",
                         "The target has 0.91 once and 0.01 nine times."),
            ValueMistake("one_other", -(0.91 * math.log(0.91) + 0.01 * math.log(0.01)), "one other class is counted", "There are nine.", "Nine times the price of 0.01."),
            ValueMistake("bits", reference.smoothing_floor / math.log(2), "it is counted in bits", "The course, and torch, use the natural log.", "Use log, not log2."),
            ValueMistake("negative", -reference.smoothing_floor, "the sign is turned", "A loss is minus a log.", "Look for the minus."),
            ValueMistake("uniform", math.log(10), "that is the loss of a model that knows nothing", "A perfect model knows the target.", "Price 0.91 and 0.01, not 1/10."),
        ),
        rtol=2e-3,
        proves="the entropy of the smoothed target",
    ),
    "views_of_one_image": ValueChecker(
        "views_of_one_image", reference.views_of_one_image,
        (
            ValueMistake("no_mirror", 81, "the mirror is missing", "Each window is seen from both sides.", "Count each window twice."),
            ValueMistake("eight_places", 128, "one place is missing in each direction", "0 to 8 are nine places.", "Count both ends."),
            ValueMistake("eight_places_no_mirror", 64, "one place is missing in each direction, and the mirror", "0 to 8 are nine places.", "Count both ends, and each window twice."),
            ValueMistake("one_direction", 18, "only one direction is counted", "Top and left are drawn apart.", "Multiply tops by lefts."),
            ValueMistake("one_direction_no_mirror", 9, "only one direction is counted", "Top and left are drawn apart.", "Multiply tops by lefts, and count the mirror."),
            ValueMistake("half_the_border", 50, "places from 0 to 4 are counted", "Padding is added on both sides.", "Offsets run to twice the padding."),
            ValueMistake("added", 36, "tops and lefts are added", "Every top goes with every left.", "Multiply."),
            ValueMistake("mirrored_both_ways", 324, "the mirror is counted twice", "Images are mirrored left to right only.", "One coin has two sides."),
        ),
        proves="tops times lefts times two",
    ),
    "last_batch_weight": ValueChecker(
        "last_batch_weight", reference.last_batch_weight,
        (
            ValueMistake("inverse", 0.125, "the ratio is turned round", "The fewer share a batch's say, the more each has.", "An image of the last batch against one of a full batch."),
            ValueMistake("equal", 1, "that would be a mean weighted by batch size", "A mean of means gives every batch, not every image, the same say.", "Count the images that share the last batch's say."),
            ValueMistake("images_left", 16, "the images left over are counted", "That is how many share the last batch's say.", "Compare 1/16 with 1/128."),
            ValueMistake("batches", 79, "batches are counted", "Every batch has the same say; the question is how many images share it.", "Compare the last batch with a full one."),
            ValueMistake("full_batches", 78, "batches are counted", "Every batch has the same say; the question is how many images share it.", "Compare the last batch with a full one."),
            ValueMistake("full_batch", 128, "the images of a full batch are counted", "That is how many share its say.", "Compare it with the images left over."),
        ),
        proves="the images of a full batch over those of the last",
    ),
}  # fmt: skip
