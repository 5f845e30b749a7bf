import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vitedu.checks import families
from vitedu.checks.kit import Case, Checker, Mistake, classifier_state, distinct, draw, draw_batches


def cases(g: torch.Generator) -> list[Case]:
    """Draw classifiers and batches; each part of the contract shows in a case that shows little else."""

    def case(words, sizes, keep, lr=0.0, factor=1.0, training=True, once=False, **rest):
        state = classifier_state(g, C * H * W, hidden, K, dtype=rest.pop("dtype", torch.float32))
        batches = draw_batches(g, state, sizes, (C, H, W), rest.pop("scales", (2.0,)))
        args = {"model": None, "batches": batches, "optimizer": lr, "scheduler": factor}
        extra = {
            "keep": keep,
            "training": training,
            "once": once,
            "other_mode": rest.pop("other_mode", ()),
            "gradients_left": words.endswith("gradients left"),
        }
        rest |= {"number": True, "outputs": ("mean_loss", "accuracy"), "rtol": 1e-4, "atol": 1e-5}
        name = f"{words} (batches of {', '.join(map(str, sizes))})"
        return Case(name, args, driver="epoch", state=state, extra=extra, **rest)

    C, H, W = distinct(g, 3, 1, 4)
    K, hidden = distinct(g, 2, 3, 5)
    five, four, three = (size + draw(g, 0, 1) for size in (6, 4, 2))
    results = ("results",)
    learning = {"part": "learning", "scales": (0.02, 3.0, 0.2, 30.0), "lr": 0.5}
    return [
        case("learning rate 0", [five, four, three], results),
        case(
            "batches that can be read once",
            [four, five, 1],
            results,
            once=True,
            part="any iterable",
        ),
        case("learning rate 0.5", [four, three, five, three], ("learning",), **learning),
        case("learning rate 0.5, gradients left", [four, three], ("learning",), **learning),
        case(
            "learning rate 0.5, float64",
            [four, five, three],
            ("learning",),
            dtype=torch.float64,
            **learning,
        ),
        # images so dark that no gradient is clipped, not even to a norm of 0.5, and steps so large that answers change
        case(
            "results while it learns",
            [5 * four, 5 * three, 5 * five],
            results,
            lr=100.0,
            part="before the update",
            scales=(0.02,),
        ),
        case(
            "a model that comes in eval mode",
            [four, three],
            ("mode",),
            training=False,
            part="train mode",
        ),
        case(
            "a model with a part in eval mode",
            [four, three],
            ("mode",),
            other_mode=("body.1",),
            part="train mode",
        ),
        case("the order of steps", [four, three, three], ("order",), factor=0.5, part="order"),
        case(
            "one batch, a model that comes in eval mode",
            [four],
            results,
            training=False,
            part="other sizes",
        ),
    ]


CLIP = "nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)"

MISTAKES = (
    *families.RESULTS_BANK,
    Mistake(
        "graph_kept",
        "the mean loss still holds the graph of every batch",
        "Python numbers",
        "A graph keeps the activations of its batch: memory would grow with every batch of the epoch.",
        "Add loss.item(), not loss.",
        {"loss.item()": "loss"},
        evidence=families.graph_of,
    ),
    Mistake(
        "cleared_afterwards",
        "gradients are cleared after the step only",
        "every step on fresh gradients, the first one too",
        "Whoever used the model before may have left some.",
        "Clear them before backward.",
        {
            "optimizer.zero_grad()": "pass",
            "scheduler.step()": "scheduler.step()\noptimizer.zero_grad()",
        },
    ),
    Mistake(
        "no_zero_grad",
        "gradients pile up from batch to batch",
        "gradients of this batch alone",
        "backward() adds to .grad; what the batches before left there is still in it.",
        "Clear the gradients once a batch.",
        {"optimizer.zero_grad()": "pass"},
    ),
    Mistake(
        "not_clipped",
        "the optimizer steps on unclipped gradients",
        "a gradient norm of at most 1 at every step",
        "One odd batch can throw the weights far off.",
        "Clip between backward() and step().",
        {CLIP: "pass"},
    ),
    Mistake(
        "clipped_by_value",
        "each gradient entry is clipped by itself",
        "the norm of all gradients together clipped to 1",
        "Clipping entries changes the direction of the step.",
        "Use clip_grad_norm_.",
        {CLIP: "nn.utils.clip_grad_value_(model.parameters(), 1.0)"},
    ),
    Mistake(
        "clipped_one_by_one",
        "each parameter's gradient is clipped by itself",
        "the norm of all gradients together clipped to 1",
        "The proportions between the layers would change.",
        "Give clip_grad_norm_ all parameters at once.",
        {CLIP: "for p in model.parameters():\n    nn.utils.clip_grad_norm_([p], max_norm=1.0)"},
    ),
    Mistake(
        "always_norm_one",
        "small gradients are blown up to norm 1",
        "gradients below norm 1 left as they are",
        "Close to the minimum the steps must become small.",
        "Scale only where the norm is above 1.",
        {
            CLIP: "norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()\nfor p in model.parameters():\n    p.grad /= norm"
        },
    ),
    Mistake(
        "gradient_of_the_sum",
        "the gradient is that of the sum over the batch",
        "the gradient of the mean",
        "Clipping hides it where gradients are long; short ones are too long by the size of the batch.",
        "Call backward() on the mean.",
        {"loss.backward()": "(loss * len(labels)).backward()"},
    ),
    Mistake(
        "another_norm",
        "gradients are clipped to another norm",
        "a gradient norm of at most 1",
        "The text asks for 1.",
        "Look at max_norm.",
        {"max_norm=1.0": "max_norm=5.0"},
        also=tuple({"max_norm=1.0": f"max_norm={norm}"} for norm in (0.1, 0.5, 2.0, 10.0)),
    ),
    Mistake(
        "first_group_clipped",
        "only the optimizer's first group is clipped",
        "the norm of all gradients together clipped to 1",
        "The other groups step on whatever comes.",
        "Give clip_grad_norm_ all parameters of the model.",
        {
            "clip_grad_norm_(model.parameters()": 'clip_grad_norm_(optimizer.param_groups[0]["params"]'
        },
    ),
    Mistake(
        "no_step",
        "the optimizer never steps",
        "one optimizer step a batch",
        "Nothing is learned.",
        "Call optimizer.step() after clipping.",
        {"optimizer.step()": "pass"},
    ),
    Mistake(
        "measured_after",
        "loss and accuracy are measured after the update",
        "measured before the update each batch causes",
        "On a batch just learned a model looks better than it is.",
        "Use the logits that gave the gradient.",
        {
            "total_loss += loss": "with torch.no_grad():\n    logits = model(images)\n    loss = cross_entropy(logits, labels)\ntotal_loss += loss"
        },
        evidence=families.own_results,
    ),
    Mistake(
        "hits_after",
        "the right answers are counted after the update",
        "measured before the update each batch causes",
        "On a batch just learned a model looks better than it is.",
        "Count with the logits that gave the gradient.",
        {
            "total_loss += loss": "with torch.no_grad():\n    logits = model(images)\ntotal_loss += loss"
        },
        part="before the update",
        evidence=families.own_results,
    ),
    Mistake(
        "scheduler_first",
        "the scheduler steps before the optimizer",
        "optimizer first, scheduler second",
        "The first learning rate of the schedule would be skipped.",
        "Swap the two lines.",
        {"optimizer.step()\nscheduler.step()": "scheduler.step()\noptimizer.step()"},
    ),
    Mistake(
        "scheduler_once",
        "the scheduler steps once an epoch",
        "one scheduler step a batch",
        "The schedule counts batches; it would hardly begin.",
        "Move scheduler.step() into the loop.",
        {"scheduler.step()": "pass", "return": "scheduler.step()\nreturn"},
    ),
    Mistake(
        "no_scheduler",
        "the scheduler never steps",
        "one scheduler step a batch",
        "The learning rate would stay where the climb begins.",
        "Call scheduler.step() after optimizer.step().",
        {"scheduler.step()": "pass"},
    ),
    Mistake(
        "mode_untouched",
        "the model keeps the mode it came in",
        "train mode",
        "After an evaluation it would learn in eval mode, without dropout.",
        "Call model.train() first.",
        {"model.train()": "pass"},
    ),
    Mistake(
        "eval_mode",
        "the model learns in eval mode",
        "train mode",
        "Dropout would be off, and running statistics would stay still.",
        "Call model.train(), not model.eval().",
        {"model.train()": "model.eval()"},
    ),
    Mistake(
        "root_mode_only",
        "only the model itself is in train mode, its parts are not",
        "train mode in every part",
        "The attribute training of a module says nothing about its parts.",
        "Call model.train(), which goes through all of them.",
        {"model.train()": "model.training = True"},
    ),
)


def with_tensors(model, batches, optimizer, scheduler):
    model.train()
    model.zero_grad(set_to_none=True)
    losses, hits = [], []
    for images, labels in batches:
        logits = model(images)
        each = F.cross_entropy(logits, labels, reduction="none")
        each.mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        scheduler.step()
        losses.append(each.detach())
        hits.append(logits.argmax(1) == labels)
    return torch.cat(losses).mean(), torch.cat(hits).float().mean()


def clipping_by_hand(model, batches, optimizer, scheduler):
    for module in model.modules():
        module.training = True
    sums = np.zeros(3)
    for images, labels in iter(batches):
        logits = model(images)
        loss = nn.CrossEntropyLoss()(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"]]
        norm = sum(float((g**2).sum()) for g in gradients) ** 0.5
        if norm > 1.0:
            for gradient in gradients:
                gradient.mul_(1.0 / (norm + 1e-6))
        optimizer.step()
        scheduler.step()
        right = int(torch.eq(logits.max(dim=1).indices, labels).sum())
        sums += [float(loss) * labels.shape[0], right, labels.shape[0]]
    return sums[0] / sums[2], sums[1] / sums[2]


def by_running_mean(model, batches, optimizer, scheduler):
    was = model.training
    model.train(True)
    mean_loss = accuracy = torch.zeros(())
    seen = 0
    parameters = list(model.parameters())
    for images, labels in batches:
        logits = model(images)
        loss = (logits.logsumexp(1) - logits[torch.arange(len(labels)), labels]).mean()
        gradients = torch.autograd.grad(loss, parameters)
        factor = (1 / torch.cat([g.flatten() for g in gradients]).norm()).clamp(max=1.0)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient * factor
        optimizer.step()
        scheduler.step()
        seen += len(labels)
        share = len(labels) / seen
        mean_loss = mean_loss + share * (loss.detach() - mean_loss)
        accuracy = accuracy + share * ((logits.argmax(-1) == labels).double().mean() - accuracy)
    model.train(was)
    return [mean_loss.item(), accuracy.numpy()]


def with_closure(model, batches, optimizer, scheduler):
    model.train()
    table = []
    for images, labels in batches:

        def closure(images=images, labels=labels):
            for parameter in model.parameters():
                parameter.grad = None
            logits = model(images)
            loss = F.nll_loss(logits.log_softmax(1), labels, reduction="sum") / len(labels)
            loss.backward()
            nn.utils.clip_grad_norm_(list(model.parameters()), max_norm=1)
            hits = (logits.argmax(1) == labels).sum()
            table.append((loss.item() * len(labels), int(hits), len(labels)))
            return loss

        optimizer.step(closure)
        scheduler.step()
    losses, hits, sizes = map(sum, zip(*table, strict=True))
    return losses / sizes, hits / sizes


CHECKER = Checker(
    "train_one_epoch",
    is_related=False,  # what is kept tells what training did, and is no output of the answer
    proves={
        "any iterable": "batches may come from a generator, and be of any size",
        "values": "mean loss and accuracy over all images, each counting the same",
        "learning": "every step on fresh gradients, clipped to norm 1",
        "before the update": "measured before the update each batch causes",
        "train mode": "learns in train mode, whatever the mode before",
        "order": "optimizer, then scheduler, once a batch",
        "other sizes": "also for one batch",
    },
    special="model.training; not model.training; isinstance(batches, list) and len(batches) == 1",
    equivalent={
        **families.RESULTS_SURVIVORS,
        families.AS_MANY_LABELS: ("total_loss += loss.item() * len(images)", "seen += len(images)"),
    },
    left_open={
        "whose gradients are cleared differs only where model and optimizer hold different parameters": (
            "model.zero_grad()",
        ),
        families.TENSOR_AS_NUMBER: ("correct += (logits.argmax(dim=-1) == labels).sum()",),
    },
)
