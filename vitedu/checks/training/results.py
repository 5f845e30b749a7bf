"""What train_one_epoch and evaluate share: a small classifier, batches, and the mistakes of a mean."""

import torch

from vitedu.checks.families import SAME_AXIS, SAME_ZERO
from vitedu.checks.inputs import normal
from vitedu.checks.mistakes import Mistake
from vitedu.checks.probing import Case, Observation


def classifier_state(
    g: torch.Generator, pixels: int, hidden: int, K: int, norm=False, dtype=torch.float32
):
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


def draw_batches(g: torch.Generator, state: dict, sizes, shape, scales=(2.0,)):
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


def own_results(case: Case, seen: Observation) -> str:
    values = [seen.arrays.get(name) for name in case.outputs]
    if any(value is None for value in values):
        return "other results"
    return "mean loss {:.4g}, accuracy {:.4g}".format(*(float(x) for x in values if x is not None))


def graph_of(case: Case, seen: Observation) -> str:
    return "a mean loss with requires_grad=True"


START, FOR = "total_loss, correct, seen = 0.0, 0, 0", "for images, labels in batches:"
COUNTED = {START: START + "\ncount = 0", "seen += len(labels)": "seen += len(labels)\ncount += 1"}

RESULTS_BANK = (  # of train_one_epoch and evaluate alike
    Mistake("loss_unweighted", "the mean loss is a mean of batch means", "every image counts the same",
            "An image of a short last batch would weigh more than any other.",
            "Multiply each batch's loss by its number of images, and divide by all images.",
            COUNTED | {".item() * len(labels)": ".item()", "total_loss / seen": "total_loss / count"},
            evidence=own_results),
    Mistake("accuracy_unweighted", "the accuracy is a mean of batch accuracies", "every image counts the same",
            "An image of a short last batch would weigh more than any other.",
            "Count hits and images; divide once, at the end.",
            COUNTED | {".sum().item()": ".double().mean().item()", "correct / seen": "correct / count"},
            evidence=own_results),
    Mistake("loss_over_batches", "the mean loss divides a sum over images by the batches",
            "the mean over all images", "It grows with the batch size.", "Divide by the images seen.",
            COUNTED | {"total_loss / seen": "total_loss / count"}, evidence=own_results),
    Mistake("hits_over_batches", "the accuracy divides hits by the batches", "an accuracy in [0, 1]",
            "Hits are counted image by image, and a batch has many.", "Divide by the images seen.",
            COUNTED | {"correct / seen": "correct / count"}, evidence=own_results),
    Mistake("loss_summed", "the losses are added, not averaged", "the mean over all images",
            "It would grow with the data set.", "Divide by the images seen.",
            {"total_loss / seen": "total_loss"}, evidence=own_results),
    Mistake("hits_counted", "the accuracy is a count", "an accuracy in [0, 1]",
            "Counts of data sets of two sizes cannot be compared.", "Divide by the images seen.",
            {"correct / seen": "correct"}, evidence=own_results),
    Mistake("percent", "the accuracy is in percent", "an accuracy in [0, 1]",
            "The course keeps fractions and shows percent.", "Leave out the 100.",
            {"correct / seen": "100 * correct / seen"}, evidence=own_results),
    Mistake("swapped_results", "accuracy and loss have changed places", "(mean_loss, accuracy)",
            "Callers unpack them in this order.", "Turn the pair round.",
            {"total_loss / seen, correct / seen": "correct / seen, total_loss / seen"}, evidence=own_results),
    Mistake("loss_alone", "only the loss is returned", "(mean_loss, accuracy)", "Callers unpack two numbers.",
            "Count the hits too.", {", correct / seen": ""}),
    Mistake("last_batch_only", "only the last batch is reported", "a mean over all batches",
            "One batch is a noisy sample.", "Start the sums before the loop, and add inside.",
            {FOR: FOR + "\n    total_loss, correct, seen = 0.0, 0, 0"}, evidence=own_results),
    Mistake("one_batch_only", "the loop ends after the first batch", "every batch once",
            "The other batches are never seen.", "Look for a return or break inside the loop.",
            {"seen += len(labels)": "seen += len(labels)\nbreak"}, evidence=own_results),
    Mistake("last_batch_dropped", "a short last batch is left out", "every batch, of whatever size",
            "Its images would never count.", "Take every batch that comes.",
            {START: START + "\nsize = 0", FOR: FOR + "\n    size = size or len(labels)\n    if len(labels) < size:\n        break"},
            evidence=own_results),
    Mistake("softmax_first", "softmax is applied before cross-entropy", "cross-entropy of the logits",
            "Cross-entropy applies the softmax itself; twice flattens it.", "Hand the logits over as they are.",
            {"entropy(logits": "entropy(logits.softmax(dim=-1)"}, evidence=own_results),
    Mistake("smoothed_loss", "the loss is smoothed", "mean cross-entropy without smoothing",
            "Smoothed and plain losses cannot be compared.", "Leave label_smoothing at its default.",
            {"entropy(logits, labels": "entropy(logits, labels, label_smoothing=0.1"}, evidence=own_results),
    Mistake("needs_len", "the batches must have a length", "any iterable, a generator too",
            "A generator does not know how many batches it will give.", "Count while you go.",
            {FOR: "len(batches)\n" + FOR}),
    Mistake("read_twice", "the batches are read twice", "any iterable, read once",
            "A generator is empty after its first reading.", "Do all the work in one loop.",
            {FOR: "for _ in batches:\n    pass\n" + FOR}),
)  # fmt: skip

ANY_ITERABLE = {"any iterable": "batches may come from a generator, and be of any size"}

SURVIVORS = {  # of both loops
    SAME_ZERO: (
        "correct, total_loss, seen = (0.0, 0, 0)",
        "seen, correct, total_loss = (0.0, 0, 0)",
        "total_loss, seen, correct = (0.0, 0, 0)",
        "total_loss, correct, seen = (0, 0.0, 0)",
        "total_loss, correct, seen = (0, 0, 0.0)",
    ),
    SAME_AXIS: ("correct += (logits.argmax(dim=1) == labels).sum().item()",),
}
