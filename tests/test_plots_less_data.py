"""Figures of notebook 07: the right number in its place, the right neighbour under its name."""

import math

import numpy as np
import pytest
import torch

from vitedu.plots import less_data as plots


def test_collapse_has_a_panel_for_entropy_and_one_for_spread():
    """Each arm in both, with the level of an even answer."""
    fig = plots.show_collapse({"a": [(4.0, 0.1), (1.0, 2.0)]}, [0, 9], math.log(64))
    first, second = (ax.lines[0].get_ydata() for ax in fig.axes)
    assert list(first) == [4.0, 1.0] and list(second) == [0.1, 2.0]
    assert [ax.get_title() for ax in fig.axes] == ["entropy", "spread"]
    assert [text.get_text() for text in fig.axes[0].texts] == ["even answer: 4.16"]
    assert fig.axes[1].get_ylim()[1] < 3


def test_three_tasks_have_a_column_each_and_the_control_in_all():
    """Looks are relative to an even one, dots are heads, grey lines are the last task's."""
    tasks = ("a", "untrained")
    looks = {task: torch.full((4, 2, 2), 0.2 * 10**k) for k, task in enumerate(tasks)}
    colours = {task: torch.full((4, 3, 8, 8), 0.5) for task in tasks}
    reach = {task: [[1, 2, 3], [3, 4, 4.5]] for task in tasks}
    probes = {"a": {"class token": [20, 60]}, "untrained": {"class token": [30, 31]}}
    images = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    fig = plots.show_three_tasks(images, looks, colours, reach, probes, 4.1)
    panels = np.array(fig.axes[:12]).reshape(4, 3)
    assert panels[0, 0].images[0].get_array().shape[:2] == (16, 16)
    assert [ax.images[0].get_array().max() for ax in panels[0, 1:]] == pytest.approx([1, 10])
    assert [list(line.get_ydata()) for line in panels[2, 1].lines][:3] == [[1, 3], [2, 4], [3, 4.5]]
    assert [list(line.get_ydata()) for line in panels[3, 1].lines[:2]] == [[30, 31], [20, 60]]
