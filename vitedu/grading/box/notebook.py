"""Run one notebook from top to bottom, and let the judge probe an answer at each ``check``.

Role: ``main`` serves one judge. A "run" request brings the cells. The reply to it is the first
thing that the notebook needs: leave to run a cell, or a verdict on an answer. The judge then asks
what ``worker`` answers, and says at last how the notebook goes on. The last reply says that it has
ended. What ``worker`` says about trust holds here too: no reply proves anything but values.

The course's modules are here as references of earlier exercises; everything else of the course is
``Absent``. What an exercise forbids is refused only in a process that refuses it from the first
statement on. For the worker, so with the standard library, numpy and torch only.
"""

import builtins
import contextlib
import os
import re
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

from vitedu.checks.observing.answers import LocalAnswer
from vitedu.checks.observing.limits import capture_output
from vitedu.grading.box import worker
from vitedu.grading.box.cells import REFUSAL, Cells
from vitedu.grading.box.course_stand_ins import Absent, Course
from vitedu.grading.box.memory_files import MemoryFiles
from vitedu.grading.box.reach import marks, reach
from vitedu.grading.transport.wire import PREFIX, WireError, length_of, pack, unpack

MIN_SECONDS = 0.5  # that a cell has at least after a check
MAX_LOST = 3  # failed cells that are named with an answer
# bound now, because a cell could replace what is looked up later
_set_timer, _exit = signal.setitimer, os._exit
_pack, _unpack, _length_of, _update = pack, unpack, length_of, dict.update
_FILES = MemoryFiles()
warm_up = worker.warm_up
# tools of the course's first cell that decide nothing
_SILENT = ("hint", "progress", "reset", "challenge", "export_model")


class Report:
    """What ``check`` gives back in the box: whether it passed, and what to go on with."""

    points = max_points = 0
    misconceptions = findings = lines = remarks = ()

    def __init__(self, passed: bool, implementation: Any):
        self.passed, self.implementation = passed, implementation

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return ""


@dataclass
class Request:
    """What the judge sends; see ``running.Run``."""

    # number, source, whether it is the student's, mocks, exercises to check above it, and those
    # that the cell above has defined
    cells: list[list]
    kinds: dict[str, str]  # exercise -> kind
    places: dict[str, str]  # exercise -> module with its reference
    modules: dict[str, str]  # visible part of the course: module -> source
    files: dict[str, str]  # beside the notebook: path -> text
    notebooks: dict[str, list[str]]  # the student's other notebooks: file -> cells
    decided: dict[str, bool]  # exercise -> whether it passed, where another process decided
    forbidden: list[str]  # functions and kernels that are refused
    last: list[str]  # exercises that are checked at the end
    again: bool  # at the end, also those that a cell has checked
    seconds: float  # of one cell, without what its checks take
    nonce: str = ""
    do: str = "run"


class Line:
    """The connection to the judge.

    Attributes:
        session: answers what the judge asks about the present answer.
    """

    def __init__(self, source: int, sink: int):
        self.source, self.sink = os.fdopen(source, "rb"), os.fdopen(sink, "wb")
        self.nonce = None
        self.session = worker.Session()
        self.builtins: dict[str, Any] = {}  # put back whenever the judge is asked

    def receive(self) -> dict:
        """Wait for a request; end the process if there is none."""
        prefix = self._read(PREFIX)
        request = _unpack(prefix + self._read(_length_of(prefix)), is_trusted=True)
        self.nonce = request["nonce"]
        return request

    def _read(self, count: int) -> bytes:
        data = self.source.read(count)
        if len(data) < count:
            _exit(0)
        return data

    def reply(self, done: Any, failed: str = "") -> None:
        """Reply to the request received last."""
        word = {"failed": failed} if failed else {"done": done}
        try:
            frame = _pack({"nonce": self.nonce} | word)
        except WireError as error:
            frame = _pack({"nonce": self.nonce, "failed": str(error)[:200]})
        self.sink.write(frame)
        self.sink.flush()

    def ask(self, message: dict) -> dict:
        """Say what the notebook needs, answer what the judge asks, return how to go on."""
        _update(vars(builtins), self.builtins)
        self.reply(message)
        while (request := self.receive())["do"] != "go":
            self._serve(request)
        return request

    def _serve(self, request: dict) -> None:
        self.session.restore()
        try:
            done, failed = getattr(self.session, f"_{request['do']}")(request), ""
        except BaseException as error:  # student code may raise anything
            done, failed = None, type(error).__name__[:100]
        _set_timer(signal.ITIMER_REAL, 0)  # in case the answer has set one
        self.reply(done, failed)


@dataclass
class Probed:
    """What became of the checks of one exercise."""

    answers: list = field(default_factory=list)  # (answer, whether it passed)
    cells: set[int] = field(default_factory=set)
    is_settled: bool = False  # a check of the student's own passed last
    # of an answer that failed, and of the reference in its place: what, and its marks
    marked: list = field(default_factory=list)


class Notebook:
    """A notebook that runs."""

    def __init__(self, line: Line, request: Request):
        self.line, self.request = line, request
        session = line.session
        if request.forbidden:
            session.forbid(request.forbidden)
        _FILES.install()
        _FILES.contents.update({name: text.encode() for name, text in request.files.items()})
        session.restore = worker.make_restorer()
        line.builtins = dict(vars(builtins))
        worker.hide_judges()
        package = sys.modules["vitedu"]
        package.check, package.solution = self.check, self.solution  # type: ignore[attr-defined]
        for name in _SILENT:
            setattr(package, name, lambda *rest, **settings: Absent())
        self.course = Course(request.places, request.modules)
        sys.meta_path.append(_FILES)
        self.cells = Cells(_FILES, request.notebooks, request.seconds)
        self.cells.provide = self._provide
        self.probed: dict[str, Probed] = {}
        self.is_final = self.is_implicit = self.is_early = False

    def run(self) -> dict:
        """Run the cells; return what the judge gets at the end."""
        names = self.cells.names
        for number, source, is_own, mocks, waiting, fresh in self.request.cells:
            self._check_all(waiting, number)
            self.is_early = True  # what stands below may be a part of it
            self._check_all(fresh, number)
            self.is_early = False
            go = self.line.ask({"cell": number})
            if go["modules"]:
                self.course.show(go["modules"], names)
            if go["skip"]:
                self.cells.leave_out(number, source)
                continue
            for name, code in mocks:  # what the course's data would have made
                if type(names.get(name, Absent())) is Absent:
                    space: dict[str, Any] = {}
                    exec(code, space)
                    names[name] = space[name]
            with capture_output():
                self.cells.run_cell(number, source, is_own)
        self.is_final = True
        self._check_all(self.request.last, -1)
        changed = [
            exercise
            for exercise, probed in self.probed.items()
            if any(marks(what, names) != before for what, before in probed.marked)
        ]
        absent = [name for name in self.request.places if type(names.get(name)) is Absent]
        hidden = [name for name in absent if self.course.hides(names[name])]
        return {
            "end": self.cells.errors,
            "changed": changed,
            "absent": [name for name in absent if name not in hidden],
            "hidden": hidden,
        }

    def _check_all(self, exercises: list[str], number: int) -> None:
        """Check answers that no cell checks, or that a later cell changed."""
        self.cells.number, self.is_implicit = number, True
        for exercise in exercises:
            answer = self.cells.names.get(exercise)
            is_attempt = self.request.kinds[exercise] == "value" or callable(answer)
            probed = self.probed.get(exercise, Probed())
            is_attempt |= self.is_final and not probed.answers  # nothing better came
            if exercise not in self.cells.names or not is_attempt or type(answer) is Absent:
                continue
            past, passed = probed.answers[-1] if probed.answers else (probed, False)
            is_due = past is not answer or (self.request.again if self.is_final else not passed)
            if is_due and not probed.is_settled:
                with contextlib.suppress(Exception), capture_output():
                    self.check(answer, exercise)
        self.is_implicit = False

    def solution(self, exercise: Any) -> Any:
        """Stand for ``vitedu.solution``."""
        name = exercise if isinstance(exercise, str) else getattr(exercise, "__name__", "")
        return self.course.reference(name) if name in self.request.places else Absent()

    def check(
        self, answer: Any = None, exercise: Any = None, *rest: Any, **settings: Any
    ) -> Report:
        """Stand for ``vitedu.check``."""
        name = exercise if isinstance(exercise, str) else getattr(answer, "__name__", "")
        if type(name) is not str or name not in self.request.places or type(answer) is Absent:
            return Report(True, answer)
        if name in self.course.handed and answer is self.course.handed[name]:
            return Report(True, answer)
        if name in self.request.decided:  # by another process
            passed = self.request.decided[name]
            return Report(passed, answer if passed else self._stand_in(name, answer))
        left, interval = _set_timer(signal.ITIMER_REAL, 0)
        try:
            return self._probe(name, answer)
        finally:
            if left:
                _set_timer(signal.ITIMER_REAL, max(left, MIN_SECONDS), interval)

    def _probe(self, exercise: str, answer: Any) -> Report:
        """Have an answer judged; of an exercise only once a cell, so that luck does not add up."""
        probed = self.probed.setdefault(exercise, Probed())
        if self.cells.number in probed.cells and not self.is_final:
            passed = any(past is answer and passed for past, passed in probed.answers)
            return Report(passed, answer)
        probed.cells.add(self.cells.number)
        for name in reach(answer, self.cells.names):
            self._provide(name)
        self.line.session.answer = LocalAnswer(answer)
        is_value = self.request.kinds[exercise] == "value"
        lost = self._lost_value(exercise) if is_value else self._lost(answer)
        message: dict[str, Any] = {"check": exercise, "lost": lost}
        message |= {"final": self.is_final, "early": self.is_early}
        go = self.line.ask(message)
        passed = go["passed"]
        if go.get("over"):  # too many checks: what its name means at the end is judged
            probed.is_settled = False
            return Report(passed, answer)
        probed.answers.append((answer, passed))
        is_known = self.request.kinds[exercise] != "value"  # of a value nothing is said
        probed.is_settled = passed and is_known and not self.is_implicit
        probed.marked = [] if passed else [(answer, marks(answer, self.cells.names))]
        self.course.answers[exercise] = answer
        if go["modules"]:
            self.course.show(go["modules"], self.cells.names)
            if not passed:
                return Report(False, self._stand_in(exercise, answer))
        return Report(passed, answer)

    def _provide(self, name: str) -> bool:
        """Bind an earlier exercise that no cell has bound; tell whether it may be seen."""
        if name not in self.request.places or name in self.cells.names:
            return False
        found = self.course.reference(name)
        if type(found) is not Absent:
            self.cells.names[name] = found
        return type(found) is not Absent

    def _stand_in(self, exercise: str, answer: Any) -> Any:
        """Put the reference in the place of an answer that failed, if it may be seen."""
        found = self.course.reference(exercise)
        if type(found) is Absent:
            return answer
        self.course.handed[exercise] = found
        if exercise in self.probed:
            self.probed[exercise].marked.append((found, marks(found, self.cells.names)))
        if self.cells.names.get(exercise) is answer:
            self.cells.names[exercise] = found
        return found

    def _lost(self, answer: Any) -> list[list]:
        """List what an answer misses because a cell failed here, or the course's data lack."""
        names = self.cells.names
        reached = reach(answer, names)
        lost: list[list] = [
            [-1, name, ""]
            for name, value in reached.items()
            if type(value) is Absent and not self.course.hides(value)
        ]
        known = self.request.places.keys()
        for number, kind, text, touched in reversed(self.cells.errors):
            if text.endswith(REFUSAL):
                continue
            if shared := [n for n in touched if n in reached and n not in known]:
                lost.append([number, shared[0], f"{kind}: {text}"])
        return lost[:MAX_LOST]

    def _lost_value(self, exercise: str) -> list[list]:
        """List what a value misses: names of the cells that bind it, which the box has not made."""
        word = re.compile(rf"\b{exercise}\b")
        texts = {cell[0]: cell[1] for cell in self.request.cells if cell[2]}
        binding = {cell: text for cell, text in texts.items() if word.search(text)}
        lost = []
        for place in sorted(self.cells.of_box):
            number, kind, text, touched = self.cells.errors[place]
            missed = {n for n in touched if any(_needs(each, n) for each in binding.values())}
            missed |= {*touched} if number in binding else set()
            if shared := sorted(missed - self.request.places.keys()):
                lost.append([number, shared[0], f"{kind}: {text}"])
        return lost[-MAX_LOST:]


def _needs(text: str, name: str) -> bool:
    """Tell whether a name stands in a cell, and not first where the cell itself binds it."""
    name = rf"\b{re.escape(name)}\b"
    first = re.search(name, text)
    return first is not None and not re.match(rf"\s*=(?!=)(?!.*{name})", text[first.end() :])


def main(source: int, sink: int) -> None:
    """Run the notebook that a judge sends, then answer with nothing until the pipe closes."""
    line = Line(source, sink)
    line.reply(Notebook(line, Request(**line.receive())).run())
    while True:
        line.receive()
        line.reply({})
