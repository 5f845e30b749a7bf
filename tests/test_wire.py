"""Frames and messages of the grader: what was written is read back; all else is one error."""

import contextlib
import json
from functools import partial

import pytest
import torch

from vitedu import exercises
from vitedu.checks.observing.answers import AnswerInfo, LocalAnswer, PlainValue
from vitedu.checks.observing.errors import RaisedError
from vitedu.checks.observing.observation import Observation
from vitedu.checks.observing.observe import observe
from vitedu.checks.writing.checker import Checker, find_checker
from vitedu.grading.transport import messages, wire
from vitedu.grading.transport.wire import WireError, clean, pack, unpack

hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")
read_observation = partial(messages.read_fields, Observation)
QUICK = hypothesis.settings(max_examples=60, deadline=None)
FUNCTIONS = [e.id for e in exercises.EXERCISES if isinstance(find_checker(e.id), Checker)]


def frame(header: bytes, rest: bytes = b"") -> bytes:
    """Make a frame of a header that ``pack`` would refuse."""
    body = len(header).to_bytes(4, "little") + header + rest
    return len(body).to_bytes(8, "little") + body


def header(*tensors, head=None) -> bytes:
    """Make the JSON of a header."""
    return json.dumps([head, *({wire.TENSOR: tensor} for tensor in tensors)]).encode()


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether two tensors are equal to the last bit, NaN included."""
    return pack(a) == pack(b)


def alike(ours: Observation, theirs: Observation) -> bool:
    """Tell whether two observations say the same: tensors to the bit, types, facts."""
    for group in ("arrays", "draws", "gradients"):
        mine, others = getattr(ours, group), getattr(theirs, group)
        if mine.keys() != others.keys() or not all(same_bits(mine[n], others[n]) for n in mine):
            return False
    descriptions = [
        (each.behaviour(), each.devices, each.modified, each.detached) for each in (ours, theirs)
    ]
    return descriptions[0] == descriptions[1]


# --- what was written is read back --------------------------------------------------------------

NUMBERS = st.integers(-(10**200), 10**200) | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(st.characters(categories=["L", "N"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


@pytest.mark.slow
@QUICK
@hypothesis.given(VALUES)
@hypothesis.example([float("inf"), -float("inf"), (), {}, -0.0])
def test_values_cross_unchanged(value):
    """PlainValue data comes back with its types: tuples, lists, integers and floats apart."""
    back = messages.read_value(unpack(pack(messages.write_value(value))))
    assert back == value and repr(back) == repr(value)


@pytest.mark.parametrize("name", wire.DTYPES)
@pytest.mark.parametrize("shape", [(), (2, 0, 4), (2, 3, 4)], ids=str)
def test_tensors_cross_to_the_last_bit(name, shape):
    """Every dtype on the list, of any number of axes, empty ones and transposed ones too."""
    tensor = torch.randint(0, 2, shape).to(wire.DTYPES[name])
    for given_ in (tensor, tensor.mT if tensor.ndim > 1 else tensor):
        back = unpack(pack(given_))
        assert (back.dtype, back.shape) == (given_.dtype, given_.shape) and same_bits(back, given_)


def test_special_floats_and_expanded_tensors_cross():
    """NaN and infinities keep their bits; an expanded tensor is written out."""
    odd = torch.tensor([float("nan"), float("inf"), -0.0, 1e-42])
    back, wide = unpack(pack([odd, torch.ones(1, 1).expand(5, 7)]))
    assert same_bits(back, odd) and wide.shape == (5, 7) and bool((wide == 1).all())


@pytest.mark.slow
@pytest.mark.parametrize("exercise", FUNCTIONS)
def test_cases_of_every_exercise_cross(exercise):
    """The reference does the same on a case that crossed, which does not tell what is expected."""
    checker = find_checker(exercise)
    for case in checker.draw(4):
        if case.on_accelerator:
            continue
        data = pack(messages.write_case(case, case.name))
        copy = messages.read_case(unpack(data, is_trusted=True))
        assert (copy.raises, copy.mentions, copy.part, copy.rtol) == ("", (), "values", None)
        ours, theirs = observe(checker.reference, case), observe(checker.reference, copy)
        assert alike(ours, theirs)

        back = read_observation(unpack(pack(messages.write_observation(ours))))
        assert alike(back, ours) and (back.error, back.undecided) == (ours.error, False)


def test_looks_values_and_errors_cross():
    """What an answer is, a value and an exception come back as they were."""
    info = LocalAnswer(lambda x, *, dim: x).info([(1, ("dim",)), (2, ())])
    assert info.refusals[0] == "" and info.refusals[1]
    data = json.loads(json.dumps(messages.write_fields(info)))
    assert messages.read_fields(AnswerInfo, data) == info
    plain = LocalAnswer([torch.tensor(3), "  Word ", (True, 2.5)]).plain()
    assert messages.read_fields(PlainValue, messages.write_plain(plain)) == plain
    assert plain.value == (3, "word", (True, 2.5))
    trouble = RaisedError("ValueError", ("ValueError", "Exception"), "no", (3, "raise"), True)
    assert messages.read_fields(RaisedError, messages.write_fields(trouble)) == trouble


@pytest.mark.parametrize("value", [10**4000, object(), ["x" * 10] * 10**5], ids=type)
def test_values_that_are_no_answers_arrive_as_unknown(value):
    """Endless numbers, long lists and objects are of an unknown kind, or an error of the line."""
    try:
        frame_ = pack(messages.write_plain(LocalAnswer(value).plain()))
        assert not messages.read_fields(PlainValue, unpack(frame_)).is_known
    except WireError:
        assert isinstance(value, list)


# --- whatever comes, one kind of error ----------------------------------------------------------


def try_all(head) -> None:
    """Read a message in every way; only ``WireError`` may come."""
    for kind in (AnswerInfo, PlainValue, Observation):
        with contextlib.suppress(WireError):
            messages.read_fields(kind, head)


def is_read_or_refused(data: bytes) -> None:
    """Read bytes in every way that the grader reads a reply; only ``WireError`` may come."""
    try:
        head = unpack(data)
    except WireError:
        return
    try_all(head)


GOOD = pack(
    messages.write_observation(
        Observation(
            arrays={"output": torch.ones(2, 3)},
            draws={"first": torch.ones(2)},
            gradients={"x": torch.zeros(())},
            types={"output": "tensor"},
            modified=("x",),
            parameters={"missing": ("norm.weight",)},
            seconds=1.5,
            error=RaisedError("E", ("E",), "no", (1, "x"), True),
            operations=frozenset({"add"}),
            printed="printed",
        )
    )
)


@QUICK
@hypothesis.given(st.binary(max_size=300))
@hypothesis.example(b"")
@hypothesis.example(b"\xff" * 8)
def test_any_bytes_are_a_frame_or_an_error(data):
    """Raw bytes, and raw bytes as a body and as a header of right length."""
    is_read_or_refused(data)
    is_read_or_refused(len(data).to_bytes(8, "little") + data)
    is_read_or_refused(frame(data))


@QUICK
@hypothesis.given(st.integers(0, len(GOOD) - 1), st.integers(0, 255), st.integers(-20, 20))
def test_a_damaged_frame_is_read_or_refused(place, byte, cut):
    """One byte changed, and the end cut off or lengthened."""
    data = bytearray(GOOD)
    data[place] = byte
    is_read_or_refused(bytes(data))
    is_read_or_refused(bytes(data[:cut]) if cut < 0 else bytes(data) + b"0" * cut)


KEYS = st.sampled_from(["list", "tuple", "dict", "tensor", "Layer", "float", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=25,
)

FIELDS = "arrays types facts parameters modified seconds error operations printed undecided"


@QUICK
@hypothesis.given(JSON, st.sampled_from(FIELDS.split()))
def test_any_json_in_a_message_is_read_or_refused(value, key):
    """A field of an observation may hold anything, and so may a whole message."""
    for head in (value, {**unpack(GOOD), key: value}):
        try_all(head)


REFUSED = {
    "NaN in the header": frame(b"[NaN]"),
    "a number without end": frame(b"[1e999]"),
    "an integer of many digits": frame(header(head=10**400)),
    "deeply nested": frame(b"[" * 100 + b"]" * 100),
    "nested past the parser": frame(b"[" * 200_000),
    "many values": frame(header(head=[0] * 200_000)),
    "a header too long": frame(header(head="x" * 2**20)),
    "no UTF-8": frame(b'["\xff"]'),
    "an unknown dtype": frame(header(["object", [1]]), b"12345678"),
    "a dtype that is no word": frame(header([["float32"], [1]]), b"1234"),
    "too few bytes": frame(header(["float32", [2]]), b"1234"),
    "bytes of nobody": frame(header(["float32", [1]]), b"12345"),
    "a negative size": frame(header(["uint8", [-1]])),
    "a size that is a truth": frame(header(["uint8", [True]]), b"1"),
    "a shape past all memory": frame(header(["uint8", [2**30] * 16])),
    "empty but vast": frame(header(["uint8", [0, *[2**30] * 15]])),
    "many axes": frame(header(["uint8", [1] * 17]), b"1"),
    "a boolean of 7": frame(header(["bool", [1]]), b"\x07"),
    "many tensors": frame(header(*[["uint8", [0]]] * 600)),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_hostile_frames_are_refused(data):
    """Numbers, sizes and counts that would cost memory, time or sense."""
    with pytest.raises(WireError):
        unpack(data)


FORGED = {
    "the mark that a draw was read": {"is_read": True},
    "an unknown field": {"passed": "yes"},
    "a list where words belong": {"types": [["output", ["tensor"]]]},
    "a fact that is a truth": {"facts": [["as before", True]]},
    "a word where names belong": {"modified": "x"},
    "a truth that is a number": {"detached": 1},
    "a time that is a truth": {"seconds": True},
    "no name": {"types": [[7, "x"]]},
    "an unknown group": {"others": []},
    "words where a tensor belongs": {"arrays": [["output", "tensor"]]},
    "a tensor where words belong": {"facts": [["as before", torch.ones(2)]]},
    "parameters of another kind": {"parameters": {"extra": []}},
}


@pytest.mark.parametrize("claim", FORGED.values(), ids=FORGED)
def test_claims_of_another_kind_are_refused(claim):
    """Only what a driver writes, each with its own type."""
    with pytest.raises(WireError):
        read_observation({**unpack(GOOD), **claim})


def test_a_worker_makes_no_recipes():
    """What the parent reads builds nothing: no recipe is known to it."""
    data = messages.write_plain(PlainValue(1))
    for value in ({"CpuGenerator": {"dict": [["seed", 1]]}}, {"dict": []}):
        with pytest.raises(WireError):
            messages.read_fields(PlainValue, {**data, "value": value})


def test_texts_are_cleaned_and_cut():
    """Lone surrogates, escape sequences and control characters do not pass; all letters do."""
    assert clean("größe 形 🙂\n\tx", 100) == "größe 形 🙂\n\tx"
    assert clean("\x1b[31m\x00\ud800\u202e", 100) == "\ufffd[31m\ufffd\ufffd\ufffd"
    assert clean("x" * 100, 7) == "x" * 7
    clean("\ud800", 5).encode("utf-8")
    look = messages.read_fields(AnswerInfo, messages.write_fields(AnswerInfo(kind="\ud800" * 500)))
    assert look.kind == "\ufffd" * messages.WORD


def test_arrays_beyond_the_cap_arrive_as_their_shape():
    """An answer that returns far too much has a type that says so, and nothing heavy crosses."""
    large = torch.zeros(2**18 + 1, dtype=torch.float64)
    observation = Observation({"output": large}, types={"output": "tensor"})
    data = pack(messages.write_observation(observation))
    back = read_observation(unpack(data))
    assert len(data) < 1000 and not back.arrays
    assert back.types["output"] == "tensor of shape (262145,)"
