"""The experiments of notebook 09: what was drawn is learned from; short runs give results."""

import pytest
import torch

from vitedu.bench.experiments import Measurement, captions, few_labels
from vitedu.data import targets
from vitedu.data.shapes import SHAPES
from vitedu.ground.hardware import Profile
from vitedu.pretrained.reading import read_course_model
from vitedu.transfer import LoRALinear, layerwise_lr_groups

QUICK = Profile("quick", "", "")


def test_caption_says_what_was_painted():
    """A block of each colour in each quarter, named as each shape: 240 captions in order."""
    paints = {"red": (1, 0, 0), "yellow": (1, 1, 0), "green": (0, 1, 0)}
    paints |= {"cyan": (0, 1, 1), "blue": (0, 0, 1), "pink": (1, 0, 1)}
    found = []
    for number, shape in enumerate(SHAPES):
        for colour in targets.COLOURS:
            for k, place in enumerate(targets.PLACES):
                image, mask = torch.zeros(1, 3, 32, 32), torch.zeros(1, 32, 32, dtype=torch.bool)
                row, column = 16 * (k // 2), 16 * (k % 2)
                mask[0, row + 3 : row + 9, column + 3 : column + 9] = True
                image[0] = torch.tensor(paints[colour])[:, None, None] * mask[0] * 200
                facts = captions.facts_of(image, torch.tensor([number]), mask)
                said = captions.CAPTIONS[int(captions.caption_of(facts))]
                assert said == f"a {colour} {shape} at the {place}"
                found.append(said)
    assert found == captions.CAPTIONS and len(set(found)) == 240


def test_boxes_hold_all_of_the_object_and_overlap_by_their_shares():
    """Left, top, right and bottom, as shares; two boxes that share half of each overlap by 1/3."""
    masks = torch.zeros(2, 8, 8, dtype=torch.bool)
    masks[0, 2:3, 4:8], masks[1] = True, True
    assert targets.boxes_of(masks).tolist() == [[0.5, 0.25, 1.0, 0.375], [0, 0, 1, 1]]
    one = torch.tensor([[0.0, 0.0, 0.5, 1.0]])
    assert targets.overlap(one, one) == 1 and targets.overlap(one, one + 0.6) == 0
    assert abs(targets.overlap(one, one + torch.tensor([0.25, 0, 0.25, 0])) - 1 / 3) < 1e-6


def test_depth_counts_layers_from_the_edge():
    """A 5 x 5 block has heights 1, 2 and 3; the border of the image is an edge, too."""
    masks = torch.zeros(1, 7, 7, dtype=torch.bool)
    masks[0, :5, 1:6] = True
    rings = [[1, 1, 1, 1, 1], [1, 2, 2, 2, 1], [1, 2, 3, 2, 1], [1, 2, 2, 2, 1], [1, 1, 1, 1, 1]]
    assert targets.depth_of(masks)[0, :5, 1:6].tolist() == rings
    assert targets.depth_of(masks).sum() == sum(map(sum, rings))


@pytest.mark.parametrize(
    ("way", "learned", "kept"),
    [
        ("from scratch", 311_338, False),
        ("head only", 970, True),
        ("full", 311_338, False),
        ("layer-wise", 311_338, False),
        ("LoRA", 11_722, True),
    ],
)
def test_each_way_trains_what_it_says(way, learned, kept):
    """Head only and LoRA leave every published weight below the head; the others move them."""
    model, trained = few_labels.adapt(way, 0, QUICK, lr=1e-3)
    assert trained == learned and not model.training
    assert 0 <= few_labels.test_accuracy(model, QUICK) <= 1
    weights, now = read_course_model(few_labels.NAME)[1], model.state_dict()
    now = {name.replace(".linear.", "."): tensor for name, tensor in now.items()}
    assert all(torch.equal(now[name], weights[name]) for name in weights) == kept


def test_a_students_own_parts_are_used():
    """His class stands in the named layers, with his rank; his function makes the groups."""
    asked = []

    class Own(LoRALinear):
        pass

    def groups_of(model, base_lr, decay):
        asked.append((base_lr, decay))
        return layerwise_lr_groups(model, base_lr, decay)

    yours = {"lr": 2e-3, "lora": Own, "groups_of": groups_of}
    model, learned = few_labels.adapt("LoRA", 1, QUICK, rank=2, layers=["mlp.fc2"], **yours)
    assert [type(block.mlp.fc2) for block in model.blocks] == [Own] * 4
    assert learned == 970 + 4 * 2 * (192 + 96) and not asked
    few_labels.adapt("layer-wise", 1, QUICK, count=10, **yours)
    assert asked == [(2e-3, 0.6)]


def test_best_rate_is_chosen_on_validation_and_shown_with_its_rows():
    """Seed 0 decides; its test accuracy and the other seeds have no say."""
    arms = [f"head only, {lr:g}" for lr in few_labels.RATES["head only"][:2]]
    rows = [
        Measurement("few_labels", arm, few_labels.ARMS[arm], seed, {}, found, "", {}, "", "cifar10")
        for arm, chosen in zip(arms, ((0.5, 0.1), (0.4, 0.4)), strict=True)
        for seed, share in enumerate(chosen)
        for found in [{"validation_accuracy": share, "test_accuracy": 1 - share}]
    ]
    assert few_labels.at_best_rate(reversed(rows)) == {"head only": (3e-3, rows[1::-1])}
