"""What a notebook calls: check, hint, solution, progress, reset. None of them ever raises."""

import ast
import functools
import json
import re
from pathlib import Path

import pytest
import torch

import vitedu
from vitedu import Report, check, encoder, exercises, hint, patches, progress, reset, solution
from vitedu.checks import api
from vitedu.course import results


def test_check_prints_records_and_returns(capsys):
    """A passing check prints its report, keeps the result and hands the answer on."""
    report = check(patches.patchify, seed=3)
    assert isinstance(report, Report) and report.passed
    assert report.implementation is patches.patchify
    assert capsys.readouterr().out.rstrip() == str(report)
    assert results.load()["patchify"]["status"] == "passed"


def test_failed_check_hands_on_the_reference(capsys):
    """Later cells run on the reference where the answer failed or is missing."""
    for answer in (lambda images, patch_size: images, None):
        report = check(answer, "patchify")
        assert not report.passed and report.implementation is patches.patchify
    assert capsys.readouterr().out


def test_report_is_plain_data():
    """A report as a dict survives JSON and names what the contract names."""
    report = api.judge(lambda x: x, "gelu", seed=1)
    data = json.loads(json.dumps(report.to_dict()))
    assert data == report.to_dict()
    assert {"exercise", "status", "points", "max_points", "misconception", "findings"} <= set(data)
    assert [set(f) >= {"name", "passed", "message"} for f in data["findings"]]
    assert report.misconception == data["misconception"] is None
    assert all(isinstance(f.passed, bool) and f.name and f.message for f in report.findings)


@pytest.mark.parametrize("value", [197, 197.0, torch.tensor(197), "197"], ids=repr)
def test_values_name_their_exercise(value):
    """A value is checked under the name that is given; a word is no number."""
    report = api.judge(value, "tokens_at_224")
    assert report.passed and report.is_flawless == (not isinstance(value, str))
    assert "must name its exercise" in str(api.judge(value)) or isinstance(value, str)


UNKNOWN = {
    "typing error": (patches.patchify, "pachify", "patchify"),
    "wrong case": (patches.patchify, "Patchify", "patchify"),
    "lambda": (lambda x: x, None, "a lambda must name its exercise"),
    "partial": (functools.partial(encoder.gelu), None, "must name its exercise"),
    "value": (3, None, "must name its exercise"),
    "other class": (encoder.GELU, None, "GELU"),
    "empty": (3, "", "no exercise"),
    "long": (3, "x" * 1000, "no exercise"),
    "function as name": (encoder.gelu, encoder.gelu, "must name its exercise"),
}


@pytest.mark.parametrize(("answer", "exercise", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_exercise_is_said_with_the_nearest(answer, exercise, words, capsys):
    """A name that the syllabus lacks is no error: the report says so and nothing is kept."""
    report = check(answer, exercise)
    assert report.status == "error" and words in str(report), str(report)
    assert report.implementation is answer
    assert report.to_dict()["points"] == 0 and len(str(report)) < 2000
    assert results.load() == {}
    assert capsys.readouterr().out.rstrip() == str(report)


@pytest.mark.parametrize("seed", [0, 7, -1, 2**31, 2**63, 2**70, True])
def test_any_integer_is_a_seed(seed):
    """Small, large and negative seeds draw inputs, and repeat them."""
    assert str(api.judge(encoder.gelu, seed=seed)) == str(api.judge(encoder.gelu, seed=seed))


@pytest.mark.parametrize("seed", ["three", 1.5, [1]], ids=repr)
def test_other_seeds_are_refused_in_words(seed):
    """What is no integer is named."""
    assert "seed must be an integer" in str(api.judge(encoder.gelu, seed=seed))


def test_a_fault_of_the_checker_stops_no_notebook(monkeypatch, capsys):
    """Where a checker itself breaks, the student learns that it is not their fault."""

    def broken(*args):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(api, "judge_answer", broken)
    report = check(encoder.gelu)
    assert report.status == "error" and "not your fault" in str(report)
    assert report.implementation is encoder.gelu
    assert "Traceback" not in capsys.readouterr().out


def test_hints_come_one_after_the_other(capsys):
    """Three calls give three hints; the fourth repeats the last; the count is kept."""
    hints = [str(hint("patchify")) for _ in range(4)]
    for number, text in zip((1, 2, 3, 3), hints, strict=True):
        assert f"hint {number} of 3" in text
        assert exercises.find("patchify").hints[number - 1] in text
    assert results.load()["patchify"]["hints_used"] >= 3
    assert 'solution("patchify")' in hints[-1]
    assert capsys.readouterr().out.count("hint") >= 4


def test_hint_takes_the_function_too():
    """hint(patchify) is as good as hint("patchify")."""
    assert "hint 1 of 3" in hint(patches.patchify)


def test_solution_shows_source_of_every_exercise():
    """The text of every solution defines its exercise."""
    assert all(exercise.id in solution(exercise.id) for exercise in exercises.EXERCISES)


@pytest.mark.parametrize("call", [hint, solution, reset], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "name", ["pachify", 3, None, [], object()], ids=["typing error", "3", "None", "list", "object"]
)
def test_wrong_names_are_said(call, name):
    """No call raises for a name that does not exist."""
    assert "no exercise" in call(name)


def test_reset_brings_back_the_open_state(capsys):
    """No result, no hints taken; the stub that is printed runs, and is not attempted."""
    check(encoder.gelu)
    hint("gelu")
    assert results.load()["gelu"]["status"] == "passed"
    capsys.readouterr()
    said, stub = reset("gelu").split("\n\n", 1)
    assert results.load() == {}
    assert "3.2 gelu is open again: not attempted, no hints taken" in said and "Paste" in said
    assert capsys.readouterr().out == f"{said}\n\n{stub}\n"
    names = {"torch": torch}
    exec(stub, names)
    assert check(names["gelu"]).status == "not_attempted"


def test_progress_prints_every_exercise(capsys):
    """The table names all exercises of a notebook."""
    progress("03_encoder")
    text = capsys.readouterr().out
    assert all(e.id in text for e in exercises.in_notebook("03_encoder"))
    progress("patchify")
    assert "there is not a notebook 'patchify'" in capsys.readouterr().out


def public_parameters(body):
    """Give the parameters of public functions and methods, those of ``__init__`` among them."""
    for node in body:
        if getattr(node, "name", None) in exercises.BY_ID:
            continue  # the contract has its signature
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_parameters(node.body)
        elif isinstance(node, ast.FunctionDef) and re.match("(?!_)|__init__$", node.name):
            a = node.args
            yield from filter(None, [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg])


def test_every_parameter_of_a_public_function_has_a_type():
    """In every room of the package; ``self``, ``cls`` and the exercises need none."""
    bare = [
        f"{path}, line {parameter.lineno}: {parameter.arg}"
        for path in sorted(Path(vitedu.__file__).parent.rglob("*.py"))
        for parameter in public_parameters(ast.parse(path.read_text("utf-8")).body)
        if parameter.annotation is None and parameter.arg not in ("self", "cls")
    ]
    assert bare == []
