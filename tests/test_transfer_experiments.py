"""The experiments of notebook 09: what was drawn is learned from; short runs give results."""

from statistics import fmean

import pytest
import torch

from vitedu.bench.experiments import Measurement, captions, few_labels, heads, measured
from vitedu.data import targets
from vitedu.data.shapes import SHAPES
from vitedu.hardware import Profile
from vitedu.pretrained.reading import read_course_model
from vitedu.transfer import LoRALinear, clip_loss, layerwise_lr_groups

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


def test_one_colour_of_each_shape_is_never_shown():
    """Ten of sixty combinations, and the caption numbers of a shape's colours lie four apart."""
    facts = torch.cartesian_prod(torch.arange(10), torch.arange(6), torch.arange(4))
    unseen = captions.is_held_out(facts).reshape(10, 6, 4)
    assert torch.equal(unseen.sum(dim=1), torch.ones(10, 4, dtype=torch.int64))
    assert torch.equal(captions.caption_of(facts), torch.arange(240))


def test_score_is_one_for_the_right_caption_and_tells_the_parts():
    """The right caption has everything right; a wrong place costs the caption alone."""
    facts = captions.facts_of(*captions.drawings(200, 2))
    texts = torch.eye(240)
    right = captions.score(texts[captions.caption_of(facts)], texts, QUICK)
    assert set(right.values()) == {1.0}
    facts[:, 2] = (facts[:, 2] + 1) % 4
    moved = captions.score(texts[captions.caption_of(facts)], texts, QUICK)
    assert moved["seen"] == moved["never seen"] == moved["place"] == 0
    assert moved["shape"] == moved["colour"] == moved["class from words"] == 1


def test_captions_learn_with_the_loss_that_is_given_and_without_the_pairs_left_out(monkeypatch):
    """A student's loss is called in every step, and with 64 pairs unless told otherwise."""
    sizes, shown = [], []
    whole = captions.caption_of

    def loss_of(pictures, texts, temperature):
        sizes.append(len(pictures))
        return clip_loss(pictures, texts, temperature)

    monkeypatch.setattr(captions, "caption_of", lambda facts: shown.append(facts) or whole(facts))
    pictures, texts = captions.train("CLIP", 0, QUICK, loss_of)
    captions.train("CLIP", 0, QUICK, loss_of, batch=5)
    assert sizes == [64] * 10 + [5] * 10 and not captions.is_held_out(torch.cat(shown)).any()
    assert torch.allclose(pictures.norm(dim=1), torch.ones(200), atol=1e-5)
    assert texts.shape == (240, captions.WIDTH)


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


def test_truth_scores_best_and_the_mean_box_worse():
    """The targets themselves are right in all four tasks."""
    truth = heads.targets_for_test(QUICK)[1]
    logits = torch.nn.functional.one_hot(truth["class"], 10).float()
    found = heads.score({**truth, "class": logits, "mask": truth["mask"] - 0.5}, truth)
    assert found == {"class": 1.0, "box": 1.0, "mask": 1.0, "depth": 0.0}
    blind = heads.constant_baseline(QUICK)
    assert 0.2 < blind["box"] < 0.8 and blind["depth"] > 0.3


@pytest.mark.parametrize("arm", heads.ARMS)
def test_heads_leave_the_backbone_alone(arm):
    """A short run gives four scores and four answers of the size of their targets."""
    results, found = heads.train(arm, 0, QUICK)
    truth = heads.targets_for_test(QUICK)[1]
    assert results.keys() == {"class", "box", "mask", "depth"} == found.keys()
    assert all(found[task].shape == truth[task].shape for task in ("box", "mask", "depth"))
    assert heads.train(arm, 0, QUICK)[0] == results


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
    weights, now = read_course_model(few_labels.NAME, "cifar10")[1], model.state_dict()
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


def test_rows_are_those_that_the_notebook_speaks_of():
    """Unseen pairs are nearly as good as seen ones; trained weights help, but hardly the mask."""
    found = {(row.arm, row.seed): row.results for row in measured("captions")}
    assert found.keys() == {(arm, seed) for arm in captions.ARMS for seed in range(3)}
    for seed in range(3):
        clip, siglip = found["CLIP", seed], found["SigLIP", seed]
        assert clip["seen"] > siglip["seen"] + 0.04 and siglip["never seen"] > 0.3
        assert clip["never seen"] > clip["seen"] - 0.05
        fresh = found["CLIP, random image network", seed]
        assert fresh["seen"] < 0.1 and fresh["colour"] > 0.9 and fresh["shape"] < 0.25
    best = few_labels.at_best_rate(measured("few_labels"))
    reached = {way: fmean(run.results["test_accuracy"] for run in best[way][1]) for way in best}
    assert list(best) == list(few_labels.WAYS)
    scratch = reached.pop("from scratch")
    assert scratch < 0.3 < min(reached.values()) - 0.05
    for way, (lr, _) in best.items():
        assert min(few_labels.RATES[way]) < lr < max(few_labels.RATES[way]), way
    found = {(row.arm, row.seed): row.results for row in measured("heads")}
    assert found.keys() == {(arm, seed) for arm in heads.ARMS for seed in range(3)}
    for seed in range(3):
        trained, untrained = found["trained", seed], found["untrained", seed]
        assert trained["class"] > untrained["class"] + 0.8
        assert 0 < trained["mask"] - untrained["mask"] < 0.05
