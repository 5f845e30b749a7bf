"""Run a student's notebooks in the box, and judge an answer at each ``check``.

Role: ``StudentRuns`` has what a student's notebooks say about each exercise. ``box.notebook`` runs
the cells, and ``judge`` judges what an answer does, as in the notebook. Nothing that a box says is
trusted but values.

How far a process can see is known here alone. Up to its horizon, a place in the syllabus, the box
holds references; a check of an exercise at or below the horizon counts no more. Nothing that the
box says lowers it. What came too late so, what a later cell changed after its check, and a notebook
that ran in another order get one more run, in which no reference is handed out. What an exercise
forbids counts only after a run that refuses it from the first statement on.
"""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vitedu.exercises import EXERCISES, Exercise
from vitedu.grading.box.conversation import WorkerTrouble
from vitedu.grading.box.isolation import IsolationError
from vitedu.grading.box.package_view import visible_sources
from vitedu.grading.grades import PASSED, Script
from vitedu.grading.judge import GRACE, Judge, RemoteAnswer, Verdict, conclude
from vitedu.grading.transport.wire import WireError, clean

RUN_SECONDS = 100.0  # of one run of a notebook
STUDENT_SECONDS = 400.0  # of all runs of a student; right ones take some 5 s
MAX_RUNS = 5  # processes of one run: each ends at another cell
MAX_PROBES = 6  # of one exercise in one process, and one at the end
MAX_LIST = 500  # of what the end of a run lists
PLACES = {exercise.id: place for place, exercise in enumerate(EXERCISES)}
MODULES = {exercise.id: exercise.module for exercise in EXERCISES}
KINDS = {exercise.id: exercise.kind for exercise in EXERCISES}
ENDS = ("changed", "absent", "hidden")  # lists of exercises that come with the end of a run
SERVER_ENDED = (
    "the process that starts all workers ended while this answer ran, and again when it ran alone"
)

# exercise -> name -> code in place of what a notebook computes from data that a box lacks
MOCKS = {
    # attention maps of an untrained model: weights of std 0.02 give scores of std 0.08
    "untrained_entropy": {
        "weights": "import torch\nweights = torch.softmax(0.08 * torch.randn(8, 3, 65, 65), dim=-1)"
    },
    # tokens of an image that is moved by a patch, and by a pixel
    "token_shifts": {
        "expected_tokens": "import torch\nt = torch.arange(2048.0).reshape(2, 64, 4, 4)\n"
        "expected_tokens = {'one patch': t.roll(1, -1), 'one pixel': t}",
        "tokens_after": "import torch\nt = torch.arange(2048.0).reshape(2, 64, 4, 4)\n"
        "tokens_after = {'one patch': t.roll(1, -1), 'one pixel': t + 1}",
    },
}


@dataclass
class Found:
    """What a run says about one exercise."""

    results: list[Verdict]  # the draws of its last check that counts
    lost: list[list] = field(default_factory=list)  # misses: [number of a cell or -1, name, error]
    place: int | None = None  # of the cell with that check; None: the end
    order: list[int] | None = None  # of the cells in that run

    @property
    def final(self) -> Verdict:
        """What all draws amount to."""
        return conclude(self.results)


@dataclass
class Run:
    """One run of a script, in as many processes as its cells end, and what it said.

    Attributes:
        script: the notebook.
        ids: exercises that are judged.
        student: whose notebook it is.
        order: places of the cells; None: as in the document.
        held: exercises whose references stay hidden to the end, and all later ones.
        only: the one exercise that is judged; its run refuses what it forbids.
        decided: exercise -> whether it passed, where another run decided.
        last: the place of the last cell that is needed; None: all are.
        found: exercise -> what its last check that counts found.
        late: exercises that were checked when their reference could be seen.
        changed: exercises whose answer a later cell changed after it had failed.
        absent: exercises whose name stands for something that is not here.
        hidden: exercises whose name stands for a reference that may not be seen.
        errors: [number of the cell, kind, message, names that it did not bind].
        troubles: number of a cell -> reason and detail, where it ended the process.
    """

    script: Script
    ids: Sequence[str]
    student: "StudentRuns"
    order: list[int] | None = None
    held: frozenset[str] = frozenset()
    only: str = ""
    decided: dict[str, bool] = field(default_factory=dict)
    last: int | None = None
    found: dict[str, Found] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    errors: list[list] = field(default_factory=list)
    troubles: dict[int, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self):
        script, student = self.script, self.student
        self.box, self.judge = student.box, student.judge
        scripts = student.extraction.scripts
        self.notebooks = {s.name: [c.source for c in s.cells] for s in scripts if s is not script}
        # whether this run follows another, and looks at all answers again at its end
        self.is_second = bool(self.held or self.only or self.order)
        self.end = min(student.end, time.monotonic() + RUN_SECONDS)
        known = script.defines, script.checks
        self.touched = {id: {p for own in known for p in own.get(id, ())} for id in self.ids}
        self.places = self.order or [*range(len(script.cells))]
        if self.last is not None:  # nothing below it is needed
            self.places = self.places[: self.places.index(self.last) + 1]
        self.skipped: set[int] = set()  # cells that ended a process
        self.ended: set[str] = set()  # exercises whose answer did

    def passed(self, exercise: str) -> bool:
        """Tell whether an answer passed."""
        return exercise in self.found and self.found[exercise].final.state == PASSED

    def go(self) -> "Run":
        """Run it, again without the cell or the answer that ends a process."""
        for _ in range(MAX_RUNS):
            self.place, self.checking = -1, ""
            words = self._run_once(self.box)
            if words[0] == "grader":  # the fork server ended: by another answer, or by this one
                self.place, self.checking = -1, ""
                try:
                    with self.box.open_separate() as separate_box:
                        words = self._run_once(separate_box)
                except IsolationError as error:
                    words = "grader", str(error)[:300]
                if words[0] == "grader" and (self.checking or self.place >= 0):
                    words = "crashed", SERVER_ENDED
            if not words[0]:
                break
            if self.checking:
                self.ended.add(self.checking)
                self.found[self.checking] = Found([Verdict(None, *words, is_last=True)])
            elif self.place in self.skipped or self.place < 0:
                self.troubles[-1] = words
                break
            else:
                self.skipped.add(self.place)
                self.troubles[self.script.cells[self.place].number] = words
        else:
            self.troubles[-1] = words[0], f"{MAX_RUNS} times this notebook ended its process"
        return self

    def _run_once(self, box: Any) -> tuple[str, str]:
        """Run it in one process; return why that ended early, as reason and detail, or ""."""
        try:
            with box.worker() as worker:
                self._drive(RemoteAnswer(worker, box.limits))
        except WorkerTrouble as trouble:
            return trouble.reason, clean(trouble.detail, 300)
        except WireError as error:
            reason = "memory" if "MemoryError" in str(error) else "protocol"
            return reason, clean(str(error), 300)
        return "", ""

    def _drive(self, remote: RemoteAnswer) -> None:
        """Talk with one process until it has run all cells."""
        self.remote = remote
        self.probed: dict[str, set] = {id: set() for id in self.ids}
        self.horizon = self._horizon_before(0, is_start=True)
        word = self._tell(self._request())
        while "end" not in word:
            if "check" in word:
                go = self._judge(word)
            else:
                go = self._enter(word["cell"])
            word = self._tell({"do": "go", **go})
        number_of = {cell.number for cell in self.script.cells}
        self.errors = [e for e in word["end"] if e[0] in number_of or e[0] == -1]
        self.changed = set(word["changed"])
        self.absent, self.hidden = set(word["absent"]), set(word["hidden"])

    def _horizon_before(self, index: int, *, is_start: bool = False) -> int:
        """Return the place up to which references may be seen when a cell is about to run."""
        ahead = set(self.places[index:])
        open_ids = [
            id
            for id, places in self.touched.items()
            if places & ahead or (places and id not in self.found)
        ]
        known = open_ids or ([] if not is_start else self.ids)
        places = [PLACES[id] for id in {*known, *self.held}]
        return min(places, default=len(EXERCISES)) - 1

    def _modules(self) -> dict[str, str]:
        return visible_sources(PLACES[self.only] - 1 if self.only else self.horizon)

    def _request(self) -> dict:
        """Make the first request: the cells, and what they may need."""
        script = self.script
        position = {place: index for index, place in enumerate(self.places)}
        cells: list[list] = []
        fresh: list[str] = []  # defined by the cell above, and no cell below checks it
        waiting: list[str] = []  # the same of all cells above, until one touches an exercise
        for index, place in enumerate(self.places):
            cell = script.cells[place]
            if not cell.source:
                continue
            touched = [id for id in self.ids if place in self.touched[id]]
            here = [id for id in touched if place in script.defines.get(id, ())]
            mocks = [[name, code] for id in here for name, code in MOCKS.get(id, {}).items()]
            checks = [waiting, []] if touched else [[], fresh]
            cells.append([cell.number, cell.source, cell.is_own, mocks, *checks])
            fresh = [
                id
                for id in here
                if all(position.get(p, -1) < index for p in script.checks.get(id, ()))
            ]
            waiting = fresh if touched else waiting
        return {
            "do": "run",
            "cells": cells,
            "kinds": KINDS,
            "places": MODULES,
            "modules": self._modules(),
            "files": script.files,
            "notebooks": self.notebooks,
            "decided": self.decided,
            "forbidden": sorted(self.judge.forbidden(self.only)) if self.only else [],
            "last": [id for id in self.ids if id not in self.ended],
            "again": self.is_second,
            "seconds": self.box.limits.load_seconds,
        }

    def _enter(self, number: Any) -> dict:
        """Let a cell run, with the references that no cell from it on is tested for."""
        place = next(p for p in self.places if self.script.cells[p].number == number)
        self.place, index = place, self.places.index(place)
        modules = None
        if not self.only and (new := self._horizon_before(index)) > self.horizon:
            self.horizon = new
            modules = self._modules()
        return {"modules": modules, "skip": place in self.skipped or time.monotonic() > self.end}

    def _judge(self, word: dict) -> dict:
        """Judge an answer, and say whether it passed and what may be seen now."""
        exercise, go = word["check"], dict[str, Any](passed=True, modules=None)
        if exercise not in self.probed or exercise in self.ended:
            go["passed"] = exercise not in self.ended
            return go
        place = None if word["final"] else max(self.place, 0)
        is_over = len(self.probed[exercise]) >= MAX_PROBES and place is not None
        if is_over or place in self.probed[exercise]:  # the end is judged all the same
            passed = KINDS[exercise] == "value" or self.passed(exercise)
            return go | {"passed": passed, "over": is_over}
        self.probed[exercise].add(place)
        self.checking = exercise
        results = self.judge.judge(exercise, self.remote, refused=bool(self.only))
        self.checking = ""
        found = Found(results, word["lost"], place, self.order)
        final = found.final
        if KINDS[exercise] == "value":  # the notebook does not learn whether a guess was right
            is_kept = self.passed(exercise) and place is None
        else:
            go["passed"] = final.state == PASSED
            is_kept = exercise in self.found and final.is_stub
        if not self.only and PLACES[exercise] <= self.horizon:
            self.late.add(exercise)
        elif not is_kept:
            self.found[exercise] = found
        index = self.places.index(self.place) if self.place >= 0 else 0
        is_last_try = self.touched[exercise].isdisjoint(self.places[index + 1 :])
        is_last_try &= not (word["final"] or word["early"] or self.is_second)
        if is_last_try and not go["passed"]:  # the reference may stand in for the answer
            self.horizon = max(self.horizon, PLACES[exercise])
            go["modules"] = self._modules()
        return go

    def _tell(self, message: dict) -> dict:
        """Say how the notebook goes on, and return what it needs next.

        Raises:
            WireError: it is nothing that a notebook needs.
        """
        self.remote.budget = seconds = self.box.limits.load_seconds + GRACE
        word = self.remote.ask(message, seconds)
        numbers = {self.script.cells[place].number for place in self.places}
        keys = set(word) if isinstance(word, dict) else ()
        if keys == {"cell"} and word["cell"] in numbers:
            return word
        if keys == {"check", "final", "early", "lost"}:
            lost = [[n, clean(a, 60), clean(b, 300)] for n, a, b in _rows(word["lost"], 3)]
            when = {name: word[name] is True for name in ("final", "early")}
            return when | {"check": clean(word["check"], 60), "lost": lost}
        if keys == {"end", *ENDS}:
            ids = {key: [str(id)[:60] for id in _list(word[key])] for key in ENDS}
            errors = [
                [n, clean(kind, 60), clean(text, 200), [clean(name, 60) for name in _list(names)]]
                for n, kind, text, names in _rows(word["end"], 4)
            ]
            return ids | {"end": errors}
        raise WireError("a notebook needs a cell, a verdict or an end.")


def _list(data: Any) -> list:
    if not isinstance(data, list) or len(data) > MAX_LIST:
        raise WireError(f"expected a list of at most {MAX_LIST}.")
    return data


def _rows(data: Any, length: int) -> list[list]:
    rows = [row for row in _list(data) if isinstance(row, list) and len(row) == length]
    return [row for row in rows if type(row[0]) is int]


# --- one student ---------------------------------------------------------------------------------


class StudentRuns:
    """The runs of one student's notebooks, which begin when the first answer is graded."""

    def __init__(self, box: Any, extraction: Any, exercises: Sequence[Exercise], judge: Judge):
        self.box, self.extraction, self.judge = box, extraction, judge
        # also what stands above the exercises asked for, because a reference may have to stand in
        stems = {exercise.stem for exercise in exercises}
        last = max([PLACES[exercise.id] for exercise in exercises], default=-1)
        self.exercises = [e for e in EXERCISES[: last + 1] if e.stem in stems]
        self._found: tuple[dict[str, Found], list[Run]] | None = None

    # not cached_property: before Python 3.12 one lock holds it for all students
    @property
    def found(self) -> tuple[dict[str, Found], list[Run]]:
        """What was found for each exercise, and the runs."""
        if self._found is None:
            self._found = self._run_all()
        return self._found

    def _run_all(self) -> tuple[dict[str, Found], list[Run]]:
        """Run the notebooks until each exercise has an attempt.

        Files of its chapter come first, then those that define it, and the newest of them first.
        """
        self.end = time.monotonic() + STUDENT_SECONDS
        found, runs = dict[str, Found](), list[Run]()
        for is_home, script in itertools.product((True, False), self.extraction.scripts):
            ids = [
                each.id
                for each in self.exercises
                if (each.stem in script.stems) == is_home and _is_open(found.get(each.id))
                if is_home or each.id in script.defines
            ]
            if ids and time.monotonic() < self.end:
                new, run = self._run_script(script, ids)
                runs.append(run)
                found |= {id: new[id] for id in new if _is_open(found.get(id))}
            elif ids:
                words = f"the {STUDENT_SECONDS:g} s of a student were over before it began"
                runs.append(Run(script, ids, self, troubles={-1: ("timeout", words)}))
        return found, runs

    def _run_script(self, script: Script, ids: Sequence[str]) -> tuple[dict[str, Found], Run]:
        """Run one script as often as it takes."""
        first = Run(script, ids, self).go()
        found = dict(first.found)
        failed = {
            id
            for id in {*ids} & {*found, *script.defines, *first.late}
            if not first.passed(id) and not (id in found and found[id].final.is_stub)
        }
        doubtful = failed & (first.late | first.changed)
        if failed and (doubtful or script.order) and time.monotonic() < self.end:
            held = frozenset(doubtful or failed)
            second = Run(script, ids, self, order=script.order, held=held).go().found
            for id in failed & second.keys():
                points = second[id].final.points or 0
                if id not in found or points > (found[id].final.points or 0):
                    found[id] = second[id]
        for id in ids:
            if id in found and self.judge.forbidden(id) and found[id].final.points:
                found[id] = self._run_strictly(script, id, found)
        return found, first

    def _run_strictly(self, script: Script, exercise: str, found: dict[str, Found]) -> Found:
        """Run a script where what an exercise forbids is refused; this alone decides."""
        first = found[exercise]
        decided = {id: each.final.state == PASSED for id, each in found.items() if id != exercise}
        how: dict[str, Any] = {"order": first.order, "last": first.place, "decided": decided}
        run = Run(script, [exercise], self, only=exercise, **how).go()
        strict = run.found.get(exercise)
        if strict is None:
            where = "; ".join(f"{kind}: {text}" for _, kind, text, _ in run.errors[-2:])
            words = f"the answer is not there where what is forbidden is refused: {where}"[:300]
            return Found([Verdict(reason="unstable", detail=words)])
        if strict.final.state == PASSED != first.final.state:
            strict.results = [*first.results, *strict.results]  # luck: both have to agree
        return strict


def _is_open(found: Found | None) -> bool:
    """Tell whether an exercise has no attempt so far."""
    return found is None or found.final.is_stub
