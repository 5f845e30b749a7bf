"""vitedu.bench.experiments.warmup: pairs that differ in warm-up alone, and their losses."""

import torch

from vitedu.bench.experiments import measured, warmup


def test_one_seed_gives_the_same_weights_for_either_norm():
    """Post-norm has another order and no final norm; every weight is the same."""
    pre, post = (warmup.build(norm, seed=3).state_dict() for norm in ("pre-norm", "post-norm"))
    assert set(pre) - set(post) == {"norm.weight", "norm.bias"}
    assert all(torch.equal(post[name], pre[name]) for name in post)


def test_measured_gains_are_those_that_notebook_04_states():
    """Five seeds: the sign of every gain, and its range, for each norm and peak."""
    found = {(row.arm, row.seed): row.results["final_loss"] for row in measured("warmup")}
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
