"""Run a student's notebooks in the box, and judge an answer at each ``check``.

Role: ``grade_scripts`` gives the results of a student's exercises. ``box.notebook`` runs the cells,
and ``judge`` judges what an answer does, as in the notebook. Nothing that a box says is trusted but
values.

How far a process can see is known here alone. Up to its horizon, a place in the syllabus, the box
holds references; a check of an exercise at or below the horizon counts no more. Nothing that the
box says lowers it. What came too late so, what a later cell changed after its check, and a notebook
that ran in another order get one more run, in which no reference is handed out. What an exercise
forbids counts only after a run that refuses it from the first statement on.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vitedu.checks.checker import Checker, find_lenient_checker
from vitedu.checks.engine import observe_answer
from vitedu.checks.settings import neutral_settings
from vitedu.exercises import BY_ID, EXERCISES, Exercise
from vitedu.grading import judge
from vitedu.grading.box.conversation import WorkerTrouble
from vitedu.grading.box.package_view import sources_up_to, visible_sources
from vitedu.grading.grades import (
    NOT_HANDED_IN,
    PASSED,
    REASONS,
    Answer,
    ExerciseGrade,
    Flag,
    Script,
)
from vitedu.grading.intake.scripts import rank
from vitedu.grading.student import not_handed_in
from vitedu.grading.transport.remote_answer import MAX_BYTES, RemoteAnswer
from vitedu.grading.transport.wire import WireError, clean

CELL_SECONDS = 12.0  # until a cell counts as stuck; it is interrupted after 8
RUN_SECONDS = 100.0  # of one run of a notebook
STUDENT_SECONDS = 400.0  # of all runs of a student; right ones take some 5 s
ANSWER_SECONDS = 15.0  # of one draw of an answer
MAX_RUNS = 5  # processes of one run: each ends at another cell
MAX_PROBES = 6  # of one exercise in one process
MAX_LIST = 500  # of what the end of a run lists
PLACES = {exercise.id: place for place, exercise in enumerate(EXERCISES)}
MODULES = {exercise.id: exercise.module for exercise in EXERCISES}
KINDS = {exercise.id: exercise.kind for exercise in EXERCISES}
SYNTAX = ("SyntaxError", "IndentationError", "TabError")

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
class Outcome:
    """What one run of a script said.

    Attributes:
        results: exercise -> the draws of its last check that counts.
        lost: exercise -> what that answer misses: [number of a cell or -1, name, error].
        places: exercise -> place of the cell with that check; None: the end.
        late: exercises that were checked when their reference could be seen.
        changed: exercises whose answer a later cell changed after it had failed.
        absent: exercises whose name stands for something that is not here.
        errors: [number of the cell, kind, message, names that it did not bind].
        troubles: number of a cell -> reason and detail, where it ended the process.
    """

    results: dict[str, list] = field(default_factory=dict)
    lost: dict[str, list] = field(default_factory=dict)
    places: dict[str, int | None] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    errors: list[list] = field(default_factory=list)
    troubles: dict[int, tuple[str, str]] = field(default_factory=dict)

    def passed(self, exercise: str) -> bool:
        """Tell whether an answer passed."""
        return exercise in self.results and conclude(self.results[exercise]).state == PASSED


@dataclass(frozen=True)
class Way:
    """How a script is run.

    Attributes:
        order: places of the cells; None: as in the document.
        held: exercises whose references stay hidden to the end, and all later ones.
        only: the one exercise that is judged; its run refuses what it forbids.
        decided: exercise -> whether it passed, where another run decided.
        last: the place of the last cell that is needed; None: all are.
    """

    order: list[int] | None = None
    held: frozenset[str] = frozenset()
    only: str = ""
    decided: dict[str, bool] = field(default_factory=dict)
    last: int | None = None

    @property
    def is_second(self) -> bool:
        """Whether this run follows another, and looks at all answers again at its end."""
        return bool(self.held or self.only or self.order)


class Run:
    """One run of a script, in as many processes as its cells end."""

    def __init__(
        self,
        script: Script,
        ids: Sequence[str],
        box: Any,
        judge_answer: "Judge",
        way: Way,
        notebooks: dict[str, list[str]],
        end: float,
    ):
        self.script, self.box, self.way, self.judge_answer = script, box, way, judge_answer
        self.notebooks = notebooks
        self.ids = [id for id in ids if not way.only or id == way.only]
        self.outcome = Outcome()
        self.end = min(end, time.monotonic() + RUN_SECONDS)
        self.touched = {
            id: {*script.defines.get(id, ()), *script.checks.get(id, ())} for id in self.ids
        }
        self.order = way.order or [*range(len(script.cells))]
        if way.last is not None:  # nothing below it is needed
            self.order = self.order[: self.order.index(way.last) + 1]
        self.skipped: set[int] = set()  # cells that ended a process
        self.ended: set[str] = set()  # exercises whose answer did

    def go(self) -> Outcome:
        """Run it, again without the cell or the answer that ends a process."""
        for _ in range(MAX_RUNS):
            self.place, self.checking = -1, ""
            words = self._run_once(self.box)
            if words[0] == "grader":  # the fork server ended: by another answer, or by this one
                self.place, self.checking = -1, ""
                with self.box.open_separate() as separate_box:
                    words = self._run_once(separate_box)
                if words[0] == "grader" and (self.checking or self.place >= 0):
                    words = "crashed", judge.SERVER_ENDED
            if not words[0]:
                break
            if self.checking:
                self.ended.add(self.checking)
                self.outcome.results[self.checking] = [judge._Run(None, *words, is_last=True)]
            elif self.place in self.skipped or self.place < 0:
                self.outcome.troubles[-1] = words
                break
            else:
                self.skipped.add(self.place)
                self.outcome.troubles[self.script.cells[self.place].number] = words
        return self.outcome

    def _run_once(self, box: Any) -> tuple[str, str]:
        """Run it in one process; return why that ended early, as reason and detail, or ""."""
        try:
            with box.worker("notebook") as worker:
                self._drive(RemoteAnswer(worker, box.limits))
        except WorkerTrouble as trouble:
            return trouble.reason, clean(trouble.detail, 300)
        except WireError as error:
            reason = "memory" if "MemoryError" in str(error) else "protocol"
            return reason, clean(str(error), 300)
        return "", ""

    def _drive(self, remote: RemoteAnswer) -> None:
        """Talk with one process until it has run all cells."""
        self.remote, self.probes = remote, dict.fromkeys(self.ids, 0)
        self.horizon = self._horizon_before(0, is_start=True)
        word = self._tell(self._request())
        while "end" not in word:
            if "check" in word:
                go = self._judge(word)
            else:
                go = self._enter(word["cell"])
            word = self._tell({"do": "go", **go})
        number_of = {cell.number for cell in self.script.cells}
        self.outcome.errors = [e for e in word["end"] if e[0] in number_of or e[0] == -1]
        self.outcome.changed = set(word["changed"])
        self.outcome.absent = set(word["absent"])

    def _horizon_before(self, index: int, *, is_start: bool = False) -> int:
        """Return the place up to which references may be seen when a cell is about to run."""
        ahead = set(self.order[index:])
        open_ids = [
            id
            for id, places in self.touched.items()
            if places & ahead or (places and id not in self.outcome.results)
        ]
        known = open_ids or ([] if not is_start else self.ids)
        places = [PLACES[id] for id in {*known, *self.way.held}]
        return min(places, default=len(EXERCISES)) - 1

    def _modules(self) -> dict[str, str]:
        only = self.way.only
        return visible_sources(only) if only else sources_up_to(self.horizon)

    def _request(self) -> dict:
        """Make the first request: the cells, and what they may need."""
        script, way = self.script, self.way
        position = {place: index for index, place in enumerate(self.order)}
        cells: list[list] = []
        waiting: list[str] = []  # defined above, and no cell below checks it
        for index, place in enumerate(self.order):
            cell = script.cells[place]
            touched = [id for id in self.ids if place in self.touched[id]]
            implicit = waiting if touched else []
            waiting = [] if touched else waiting
            mocks = [
                [name, code]
                for id in touched
                if place in script.defines.get(id, ())
                for name, code in MOCKS.get(id, {}).items()
            ]
            if cell.source and place not in self.skipped:
                cells.append([cell.number, cell.source, cell.is_own, mocks, implicit])
                waiting = waiting + [
                    id
                    for id in touched
                    if place in script.defines.get(id, ())
                    and all(position.get(p, -1) < index for p in script.checks.get(id, ()))
                ]
            else:
                waiting = implicit + waiting
        return {
            "do": "run",
            "cells": cells,
            "kinds": KINDS,
            "places": MODULES,
            "modules": self._modules(),
            "files": script.files,
            "notebooks": self.notebooks,
            "decided": way.decided,
            "forbidden": sorted(find_lenient_checker(way.only, 0.25).forbidden) if way.only else [],
            "last": [id for id in self.ids if id not in self.ended],
            "again": way.is_second,
        }

    def _enter(self, number: Any) -> dict:
        """Let a cell run, with the references that no cell from it on is tested for."""
        place = next(p for p in self.order if self.script.cells[p].number == number)
        self.place, index = place, self.order.index(place)
        modules, late = None, time.monotonic() > self.end
        if not self.way.only and (new := self._horizon_before(index)) > self.horizon:
            self.horizon = new
            modules = self._modules()
        return {"modules": modules, "skip": late}

    def _judge(self, word: dict) -> dict:
        """Judge an answer, and say whether it passed and what may be seen now."""
        exercise, go = word["check"], {"passed": True, "modules": None}
        if exercise not in self.probes or exercise in self.ended:
            go["passed"] = exercise not in self.ended
            return go
        self.probes[exercise] += 1
        if self.probes[exercise] > MAX_PROBES:
            return go | {"passed": self.outcome.passed(exercise)}
        self.checking = exercise
        results = self.judge_answer(exercise, self.remote, has_refused=bool(self.way.only))
        self.checking = ""
        final = conclude(results)
        if not self.way.only and PLACES[exercise] <= self.horizon:
            self.outcome.late.add(exercise)
        elif exercise not in self.outcome.results or not is_stub(final):
            self.outcome.results[exercise] = results
            self.outcome.lost[exercise] = word["lost"]
            self.outcome.places[exercise] = None if word["final"] else max(self.place, 0)
        go["passed"] = final.state == PASSED
        if not go["passed"] and self._may_hand_out(exercise, word["final"]):
            self.horizon = max(self.horizon, PLACES[exercise])
            go["modules"] = self._modules()
        return go

    def _may_hand_out(self, exercise: str, is_final: bool) -> bool:
        """Tell whether the reference may stand in for an answer: no later cell is another try."""
        if is_final or self.way.is_second or KINDS[exercise] == "value":
            return False
        index = self.order.index(self.place) if self.place >= 0 else 0
        ahead = set(self.order[index + 1 :])
        return ahead.isdisjoint(self.touched[exercise])

    def _tell(self, message: dict) -> dict:
        """Say how the notebook goes on, and return what it needs next.

        Raises:
            WireError: it is nothing that a notebook needs.
        """
        self.remote.budget = 60.0
        word = self.remote._ask(message, CELL_SECONDS + 20.0 * (message["do"] == "run"))
        numbers = {self.script.cells[place].number for place in self.order}
        if not isinstance(word, dict):
            raise WireError("a notebook needs a cell, a verdict or an end.")
        if set(word) == {"cell"} and word["cell"] in numbers:
            return word
        if set(word) == {"check", "final", "lost"}:
            lost = [[n, clean(a, 60), clean(b, 300)] for n, a, b in _rows(word["lost"], 3)]
            return {"check": clean(word["check"], 60), "final": word["final"] is True, "lost": lost}
        if set(word) == {"end", "changed", "absent"}:
            ids = {key: [str(id)[:60] for id in _list(word[key])] for key in ("changed", "absent")}
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


def conclude(results: list) -> Any:
    """Return what all draws of an answer amount to: they must agree."""
    final = next((result for result in results if result.reason == "grader"), results[0])
    if final.reason != "grader" and len({result.verdict for result in results}) > 1:
        words = "; ".join(result.describe() for result in results)
        final = judge._Run(reason="unstable", detail=f"{len(results)} draws: {words}")
    return final


def is_stub(result: Any) -> bool:
    """Tell whether nothing was attempted."""
    return result.report is not None and result.report.status == "not_attempted"


# --- one answer ----------------------------------------------------------------------------------


class Judge:
    """Judges the answers of one student: each on its own draws."""

    def __init__(self, seed: int, polish: float, draws: int, limits: Any):
        self.seed, self.polish, self.draws, self.limits = seed, polish, draws, limits
        self._tasks: dict[str, Any] = {}

    def checker(self, exercise: str) -> Any:
        """Return the checker of an exercise."""
        return find_lenient_checker(exercise, self.polish)

    def __call__(self, exercise: str, remote: RemoteAnswer, *, has_refused: bool) -> list:
        """Judge the answer that a process holds; as many draws as must agree."""
        if exercise not in self._tasks:
            checker, cases = self.checker(exercise), []
            if isinstance(checker, Checker):
                with judge._LOCK, neutral_settings():
                    cases = checker.draw(self.seed)
            answer = Answer(exercise, "")
            end = time.monotonic() + judge.MAX_SECONDS
            self._tasks[exercise] = judge._Task(
                answer, checker, cases, self.seed, None, frozenset(), end
            )
        task, results = self._tasks[exercise], []
        forbidden = getattr(task.checker, "forbidden", ())
        draws = 1 if forbidden and not has_refused else self.draws  # another run decides
        while len(results) < draws and not (results and results[-1].is_last):
            remote.budget, remote.bytes_left = ANSWER_SECONDS + 3.0, MAX_BYTES
            results.append(judge.judge_remote(task, remote, results, ANSWER_SECONDS))
        return results


# --- one student ---------------------------------------------------------------------------------


@dataclass
class Found:
    """What a student's notebooks say about one exercise."""

    results: list
    lost: list
    script: Script
    outcome: Outcome
    order: list[int] | None = None  # of the cells in the run that counts


def run_scripts(
    scripts: list[Script], exercises: Sequence[Exercise], box: Any, judge_answer: Judge
) -> tuple[dict[str, Found], list[tuple[Script, Outcome]]]:
    """Run a student's notebooks until each exercise has an attempt, the newest file first.

    Returns:
        exercise -> what was found; and every run with its script.
    """
    end, found = time.monotonic() + STUDENT_SECONDS, dict[str, Found]()
    runs: list[tuple[Script, Outcome]] = []
    ranked = {each.id: rank(each, scripts) for each in exercises}
    for round_ in range(max(map(len, ranked.values()), default=0)):
        for script in scripts:
            wanted = [
                each.id
                for each in exercises
                if len(ranked[each.id]) > round_
                and ranked[each.id][round_] is script
                and (each.id not in found or is_stub(conclude(found[each.id].results)))
            ]
            groups = [[id for id in wanted if BY_ID[id].stem in script.stems]]
            groups.append([id for id in wanted if id not in groups[0]])
            notebooks = {s.name: [c.source for c in s.cells] for s in scripts if s is not script}
            for ids in filter(None, groups):
                if time.monotonic() < end:
                    new, outcome = _run_script(script, ids, box, judge_answer, notebooks, end)
                    runs.append((script, outcome))
                    for id, each in new.items():
                        found.setdefault(id, each)
                        if is_stub(conclude(found[id].results)):
                            found[id] = each
    return found, runs


def _run_script(
    script: Script,
    ids: Sequence[str],
    box: Any,
    judge_answer: Judge,
    notebooks: dict[str, list[str]],
    end: float,
) -> tuple[dict[str, Found], Outcome]:
    """Run one script as often as it takes."""

    def run(way: Way) -> Outcome:
        return Run(script, ids, box, judge_answer, way, notebooks, end).go()

    first = run(Way())
    found = {
        id: Found(results, first.lost.get(id, []), script, first)
        for id, results in first.results.items()
    }
    failed = {
        id
        for id in {*ids} & {*found, *script.defines, *first.late}
        if not first.passed(id) and not (id in found and is_stub(conclude(found[id].results)))
    }
    doubtful = failed & (first.late | first.changed)
    if failed and (doubtful or script.order) and time.monotonic() < end:
        second = run(Way(order=script.order, held=frozenset(doubtful or failed)))
        for id in failed & second.results.keys():
            old = conclude(found[id].results).points if id in found else None
            new = conclude(second.results[id]).points
            if id not in found or (new or 0) > (old or 0):
                found[id] = Found(
                    second.results[id], second.lost.get(id, []), script, second, script.order
                )
    for id in ids:
        if id in found and getattr(judge_answer.checker(id), "forbidden", ()):
            if (conclude(found[id].results).points or 0) > 0:
                found[id] = _run_strictly(id, found, run)
    return found, first


def _run_strictly(exercise: str, found: dict[str, Found], run: Any) -> Found:
    """Run a script where what an exercise forbids is refused; this alone decides."""
    first = found[exercise]
    decided = {
        id: conclude(each.results).state == PASSED for id, each in found.items() if id != exercise
    }
    last = first.outcome.places.get(exercise)
    strict = run(Way(order=first.order, only=exercise, decided=decided, last=last))
    results = strict.results.get(exercise)
    if results is None:
        where = "; ".join(f"{kind}: {text}" for _, kind, text, _ in strict.errors[-2:])
        words = f"the answer is not there where what is forbidden is refused: {where}"[:300]
        results = [judge._Run(reason="unstable", detail=words)]
    return Found(results, strict.lost.get(exercise, []), first.script, strict)


def explain(
    exercise: str, scripts: list[Script], runs: list[tuple[Script, Outcome]]
) -> tuple[str, str] | None:
    """Say why no run came to an answer that a cell defines: (reason, detail), or None."""
    for script, outcome in runs:
        for place in reversed(script.defines.get(exercise, ())):
            number = script.cells[place].number
            if number in outcome.troubles:
                reason, detail = outcome.troubles[number]
                return reason if reason in REASONS else "protocol", f"cell {number}: {detail}"
            for at, kind, text, names in outcome.errors:
                if at != number or not (exercise in names or kind in SYNTAX):
                    continue
                words = f"cell {number}: {kind}: {text}"
                if kind in SYNTAX:
                    return "syntax", words
                if kind == "TimeUp":
                    return "timeout", "the cell itself does not end"
                return ("memory" if kind == "MemoryError" else "import"), words
        if exercise in outcome.absent:
            return "import", "it is made of the course's data, which are not here"
    return None


def grade_scripts(
    extraction: Any,
    exercises: Sequence[Exercise],
    box: Any,
    *,
    seed: int,
    polish: float,
    draws: int,
) -> list[ExerciseGrade]:
    """Grade the exercises of one student."""
    judge_answer = Judge(seed, polish, draws, box.limits)
    found, runs = run_scripts(extraction.scripts, exercises, box, judge_answer)
    return [_grade(each, found.get(each.id), runs, extraction) for each in exercises]


def _grade(
    exercise: Exercise, found: Found | None, runs: list[tuple[Script, Outcome]], extraction: Any
) -> ExerciseGrade:
    """Make the grade of one exercise, with all that a person may want to know."""
    answer = extraction.answers.get(exercise.id) or Answer(exercise.id, "")
    flags, result = list(answer.flags), None
    if found is not None:
        result = conclude(found.results)
        lost = found.lost if result.state != PASSED and not is_stub(result) else ()
        if lost and not result.reason:
            result = judge._Run(reason="import", detail=_describe_lost(*lost[0]))
    else:
        scripts = [script for script, _ in runs]
        known = explain(exercise.id, scripts, runs)
        reason, detail = known or extraction.problems.get(exercise.id, ("no_cell", ""))
        if reason == NOT_HANDED_IN:
            return not_handed_in(exercise, detail)
        result = judge._Run(reason=reason, detail=detail)
    if result.reason == "unstable":
        flags.append(Flag("unstable", f"Draws disagreed: {result.detail}."))
    if found is not None and any(each.is_undecided for each in found.results):
        words = "What it does on another device could not be seen: it ended in an error there."
        flags.append(Flag("undecided", words))
    for script in extraction.scripts:
        if result.state != PASSED and (number := script.passes.get(exercise.id)):
            words = f"cell {number} of {script.name} shows that it passed there"
            flags.append(Flag("stored_verdict", words))
            break
    grade = ExerciseGrade(
        exercise.id,
        result.state,
        float(exercise.points),
        result.points,
        reason=result.reason,
        detail=result.detail,
        printed=result.printed,
        flags=flags,
        runs=len(found.results) if found else 0,
        headline=REASONS.get(result.reason, ""),
    )
    if result.report is not None:
        judge._copy_report(grade, result.report)
    if grade.state != PASSED and grade.attempted:
        grade.code = answer.source[: judge.MAX_KEPT]
        grade.place = f"{answer.notebook}, cell {answer.cell}" if answer.cell else answer.notebook
    return grade


def _describe_lost(number: int, name: str, error: str) -> str:
    """Say what an answer misses."""
    if number < 0:
        return f"it needs {name}, which is made of the course's data; they are not here"
    return f"it needs {name}; cell {number} ended here in {error}"
