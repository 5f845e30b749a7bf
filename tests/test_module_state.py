"""What an answer changes in modules is restored."""

import json
import math

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from vitedu.checks.observing import drivers, limits, observation
from vitedu.grading.box import module_state


@pytest.fixture
def state():
    """The state before a test, which comes back after it."""
    result = module_state.ModuleState()
    yield result
    result.restore()


def lie(*rest, **settings):
    """Stand for whatever an answer would put in the place of something."""


def test_what_the_probes_use_is_restored(state):
    """A function of torch or Python, a method, a driver and the code of a helper come back."""
    before = torch.equal, math.cos, nn.Module.named_modules, drivers.DRIVERS["call"]
    code = observation.store_output.__code__
    for _ in range(2):  # a second change is seen as well
        torch.equal = math.cos = nn.Module.named_modules = lie
        drivers.DRIVERS["call"] = lie
        drivers.DRIVERS["new"] = lie
        observation.store_output.__code__ = lie.__code__
        state.restore()
        now = torch.equal, math.cos, nn.Module.named_modules, drivers.DRIVERS["call"]
        assert now == before
        assert observation.store_output.__code__ is code
        assert "new" not in drivers.DRIVERS


def test_defaults_of_a_helper_are_restored(state):
    """What a function of the probes runs with when an argument is left out comes back."""
    keep, driver = observation.store_output, module_state.ModuleState._restore_class
    before = keep.__defaults__, keep.__kwdefaults__, driver.__defaults__
    for _ in range(2):
        keep.__defaults__, keep.__kwdefaults__ = (True, True), {"number": True}
        driver.__defaults__ = (None,)
        state.restore()
        assert (keep.__defaults__, keep.__kwdefaults__, driver.__defaults__) == before


def test_what_writes_replies_and_what_is_decorated_is_restored(state):
    """The encoder of replies, the modes that watch calls, and the inside of a context manager."""
    enter, encode = TorchDispatchMode.__enter__, json.JSONEncoder.encode
    before, inner = (json.dumps, json.encoder.c_make_encoder), limits.capture_output.__wrapped__
    code = inner.__code__
    TorchDispatchMode.__enter__ = json.JSONEncoder.encode = json.dumps = lie
    json.encoder.c_make_encoder = lie
    limits.capture_output.__wrapped__.__code__ = lie.__code__
    state.restore()
    assert (json.dumps, json.encoder.c_make_encoder) == before
    assert (TorchDispatchMode.__enter__, json.JSONEncoder.encode) == (enter, encode)
    assert limits.capture_output.__wrapped__.__code__ is code


def test_names_that_are_added_to_the_probes_go(state):
    """A new name in a module of the probes, or one that hides an inherited method, is removed."""
    observation.added = lie
    observation.Observation.__eq__, before = lie, observation.Observation.__eq__
    nn.Linear.named_parameters = lie
    nn.Linear.own = lie  # hides nothing: a student may add it
    state.restore()
    assert not hasattr(observation, "added")
    assert observation.Observation.__eq__ is before
    assert "named_parameters" not in vars(nn.Linear)
    assert nn.Linear.own is lie
    del nn.Linear.own
