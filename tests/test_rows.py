"""What the shipped rows of the experiments show, as the notebooks and pages say it.

An experiment ran once; its rows came along. What its prose claims of variables of a notebook stands
in ``facts``, what it claims of rows that no variable holds stands here.
"""

from statistics import fmean

from vitedu.bench.experiments import (
    by_arm,
    captions,
    faster,
    few_labels,
    heads,
    measured,
    three_tasks,
    warmup,
)


def results_of(name):
    """Give (arm, seed) -> results of an experiment, each once."""
    rows = measured(name)
    found = {(row.arm, row.seed): row.results for row in rows}
    assert len(found) == len(rows)
    return found


def test_measured_arms_are_those_that_notebook_03_states():
    """One far behind, the others within six points, one head within the spread of the seeds."""
    found = by_arm(measured("without_one_part"), "test_accuracy")
    assert {len(values) for values in found.values()} == {3}
    whole, one_head = found.pop("whole"), found.pop("one head")
    assert max(found.pop("no residual")) < 0.35 < 0.5 < min(map(min, found.values()))
    assert max(whole) - min(map(min, found.values())) < 0.06
    assert max(map(max, found.values())) < min(whole) < max(one_head)


def test_measured_gains_are_those_that_notebook_04_states():
    """Five seeds: the sign of every gain, and its range, for each norm and peak."""
    found = {run: row["final_loss"] for run, row in results_of("warmup").items()}
    gains = {
        (norm, lr): [
            found[f"{norm}, {lr:g}, no warm-up", seed] - found[f"{norm}, {lr:g}, warm-up", seed]
            for seed in range(5)
        ]
        for norm, lr in warmup.PEAKS
    }
    stated = {key: (round(min(gain), 2), round(max(gain), 2)) for key, gain in gains.items()}
    assert stated["pre-norm", 3e-3] == (0.4, 0.71)
    assert stated["post-norm", 3e-3] == (0.16, 0.44)
    assert stated["post-norm", 1e-3] == (-0.22, -0.04)
    assert sum(abs(gain) < 0.1 for gain in gains["pre-norm", 1e-2]) == 4
    assert min(loss for (arm, _), loss in found.items() if arm.startswith("pre-norm, 0.01")) > 1.4


def test_rows_of_three_tasks_say_what_notebook_07_says():
    """Masked patches teach places, an untrained network shows colours, and depth parts tasks."""
    rows = measured("three_tasks")
    reach, probes = three_tasks.in_panels(rows)
    by_seed = results_of("three_tasks")
    for seed in range(3):
        of = {arm: by_seed[arm, seed] for arm in three_tasks.ARMS}
        place, colour = (
            {arm: each[f"components, block 3: {cause}"] for arm, each in of.items()}
            for cause in ("place", "colour")
        )
        assert place["masked"] > 0.9 > 0.7 > place["supervised"] > place["dino"] > 0.3
        assert colour["untrained"] > 0.8 > 0.5 > colour["dino"] and place["untrained"] < 0.1
    assert min(sum(reach["masked"], [])) < 2 < 2.8 < min(sum(reach["dino"], []))
    token = {arm: each["class token"] for arm, each in probes.items()}
    assert max(token[arm][0] for arm in token if arm != "untrained") < 45
    assert token["supervised"][3] > 75 > 65 > token["dino"][3] > 57 > token["masked"][3] > 50
    assert max(token["untrained"]) < 36


def test_rows_of_less_data_say_what_notebook_07_says():
    """Shifts help, mixup helps more, and features without labels save nine labels of ten."""
    found = results_of("less_data")
    known = results_of("label_counts")
    from_scratch = max(found["4,000 photographs", seed]["test_accuracy"] for seed in range(5))
    cnn = by_arm(measured("data_hunger"), "test_accuracy")["CNN, 3200 images"]
    for seed in range(5):
        ways = [found[way, seed] for way in ("nothing", "shifts and mirrors")]
        ways.append(found["shifts and mixup", seed])
        nothing, shifts, mixed = (way["test_accuracy"] for way in ways)
        assert nothing + 0.04 < shifts < mixed - 0.02
        assert ways[0]["train_accuracy"] > 0.98 > 0.9 > ways[1]["train_accuracy"]
        dino, masked, *others = (
            known[arm, seed] for arm in ("dino", "masked", "pixels", "untrained")
        )
        assert dino["400 labels"] > from_scratch
        assert dino["400 labels"] < min(cnn) < max(cnn) < dino["4,000 labels"]
        assert all(dino[count] > masked[count] for count in ("40 labels", "400 labels"))
        for other in others:
            assert dino["40 labels"] > max(other["40 labels"] + 0.1, other["4,000 labels"] - 0.02)


def test_kernels_and_two_bytes_save_the_time_that_fewer_bytes_alone_do_not():
    """Every form is measured; the model against itself says what a ratio is worth."""
    rows = {row.arm: row.results for row in measured("faster")}
    assert list(rows) == list(faster.ARMS) and {row["images"] for row in rows.values()} == {1_000}
    speed = {arm: row["times_as_fast"] for arm, row in rows.items()}
    noise = abs(speed["longhand"] - 1) + 0.02
    assert noise < 0.1 and abs(speed["own int8"] / speed["fused"] - 1) < 2 * noise
    assert speed["fused"] + 2 * noise < speed["int8 kernel"] < speed["bfloat16"] - 2 * noise
    points = {arm: 100 * (row["test_accuracy"] - 0.859) for arm, row in rows.items()}
    assert abs(points["bfloat16"]) < 0.5 and points["pruned"] < points["merged"] - 3 < -5


def test_rows_of_captions_few_labels_and_heads_say_what_notebook_09_says():
    """Unseen pairs are nearly as good as seen ones; trained weights help, but hardly the mask."""
    found = results_of("captions")
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
    found = results_of("heads")
    assert found.keys() == {(arm, seed) for arm in heads.ARMS for seed in range(3)}
    for seed in range(3):
        trained, untrained = found["trained", seed], found["untrained", seed]
        assert trained["class"] > untrained["class"] + 0.8
        assert 0 < trained["mask"] - untrained["mask"] < 0.05
