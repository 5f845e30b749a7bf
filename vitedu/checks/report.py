"""What a student reads after a check: findings, points and words, as text and as HTML.

Role: ``Finding`` and ``Report``. The plain text is complete; the HTML only decorates it. No
reference value is stored here.
"""

import html
import re
from dataclasses import dataclass, replace
from typing import Any

from vitedu import exercises
from vitedu.checks.common_errors import explain
from vitedu.checks.judge import Problem, Stage

MARKS = {"passed": "✓", "failed": "✗", "error": "✗", "not_attempted": "○"}

_HEADLINES = {
    Stage.SIGNATURE: "it takes other arguments than asked for",
    Stage.OPERATIONS: "the one operation that this exercise forbids",
    Stage.CALL: "the call ends in an error",
    Stage.STRUCTURE: "these are not the parameters asked for",
    Stage.TYPE: "the result has the wrong type",
    Stage.SHAPE: "the result has the wrong shape",
    Stage.DTYPE: "the result has the wrong dtype",
    Stage.DEVICE: "the result is on the wrong device",
    Stage.FINITE: "the result is not finite",
    Stage.VALUES: "other values than asked for",
    Stage.SECOND_CALL: "a second call goes wrong",
    Stage.UNCHANGED: "an input is modified",
    Stage.GRADIENTS: "the values are right, the gradients are not",
}

# headlines of findings that were decided without a call
_FINDING_HEADLINES = {"exercise": "the exercise is not known", "value": "not the value asked for"}

# stages at which ``Checker.advice`` is shown; the earlier stages have messages of their own
_ADVICE_STAGES = {Stage.FINITE, Stage.VALUES, Stage.FACTS}


def _is_similar(one: Problem, other: Problem) -> bool:
    """Tell whether two problems are so similar that a report shows only the first."""
    return (
        one.got == other.got
        or one.stage is other.stage is Stage.CALL
        or (one.stage, one.expected) == (other.stage, other.expected)
    )


@dataclass(frozen=True)
class Finding:
    """The verdict on one part."""

    name: str  # of the part
    passed: bool
    message: str  # what was proved, or the evidence against it
    max_points: float = 0.0
    skipped: bool = False  # not judged, because a part that it depends on failed
    expected: str = ""  # set if it was decided without a call: the message in two pieces
    got: str = ""

    @property
    def points(self) -> float:
        """Points earned."""
        return self.max_points if self.passed else 0.0

    @property
    def mark(self) -> str:
        """A sign that can be read without colour."""
        return "✓" if self.passed else "–" if self.skipped else "✗"


class Report:
    """The verdict on one answer.

    Attributes:
        exercise: its id.
        status: "passed", "failed", "error" (the answer raised) or "not_attempted".
        points, max_points: partial credit is the sum over the findings that passed.
        misconception: id of the first recognised mistake, or None.
        misconceptions: ids of all recognised mistakes.
        findings: the verdicts, in the order of judgement.
        implementation: the answer if it passed, the reference otherwise, so that later cells run.
        seed: of the inputs; ``check(..., seed=...)`` repeats the check.
        picture: an SVG that shows the counterexample, or "".
    """

    def __init__(
        self, exercise: str, *, reference: Any = None, answer: Any = None, seed: int | None = None
    ):
        self.exercise = exercise
        self.seed = seed
        self.status = "not_attempted"
        self.findings: list[Finding] = []
        self.misconception: str | None = None
        self.misconceptions: list[str] = []
        self.picture = ""
        self.lines: list[tuple[str, str]] = []  # (label, text) below the headline
        self.headline = ""
        self.printed = ""
        self.is_reference = False  # the answer is the reference that an earlier check handed out
        self._display_count: int | None = None  # the notebook's execution count at display
        entry = exercises.BY_ID.get(exercise)
        self.title = f"{entry.number} {exercise}" if entry else exercise
        self.max_points = entry.points if entry else 0
        self._answer = answer
        self.implementation = reference

    @property
    def passed(self) -> bool:
        """Whether every part passed."""
        return self.status == "passed"

    @property
    def points(self) -> float:
        """Points earned, to two decimals."""
        if self.passed:
            return self.max_points
        return round(sum(finding.points for finding in self.findings), 2)

    # --- writing the report -----------------------------------------------------------------------

    def set_not_attempted(self) -> "Report":
        """Say that there is nothing to judge yet."""
        self.status = "not_attempted"
        self.headline = (
            f'not attempted yet; later cells use the reference; hint("{self.exercise}") helps'
        )
        return self

    def set_reference(self) -> "Report":
        """Say that the answer is the reference, which an earlier check handed out."""
        self.is_reference = True
        self.headline = (
            "this is the reference, which the last check handed out: run your own cell above again"
        )
        return self

    def set_passed(self, findings: list[Finding], got: dict | None = None) -> "Report":
        """Say what was proved."""
        self.status, self.findings, self.implementation = "passed", findings, self._answer
        self.lines = [("proved", finding.message) for finding in findings]
        self._store_printed(got)
        return self

    def set_failed(
        self, findings, diagnoses, *, got=None, problems=None, status="failed", advice=None
    ) -> "Report":
        """Explain the first part that failed, and list each other failed part in one line.

        ``advice`` holds (why, try) for parts whose problem no diagnosis explains.
        """
        self.status, self.findings = status, findings
        self.misconceptions = [d.id for d in diagnoses if d.id]
        self.misconception = self.misconceptions[0] if self.misconceptions else None
        problems = problems or {}
        first = next(finding for finding in findings if not finding.passed and not finding.skipped)
        problem = problems.get(first.name)
        is_run = problem is None or problem.stage > Stage.SIGNATURE
        is_explained = any(first.name in d.parts for d in diagnoses)
        if is_explained:
            self.headline = " and ".join(d.name for d in diagnoses[:2])
            evidence = None
            for number, diagnosis in enumerate(diagnoses, 1):
                if len(diagnoses) > 1:
                    self.lines.append((f"mistake {number}", diagnosis.name))
                if got and problem and first.name in diagnosis.parts and not diagnosis.why:
                    seen, relation = got[problem.case.name], f"; {diagnosis.got}"
                    words = explain(problem, seen, self.implementation, relation)
                    diagnosis = replace(diagnosis, why=words.get("why", ""))
                self._explain(diagnosis, evidence)
                evidence = diagnosis.got
        elif problem is not None:
            is_advised = problem.stage in _ADVICE_STAGES and first.name in (advice or {})
            words = dict(zip(("why", "try"), advice[first.name], strict=True)) if is_advised else {}
            if got and not words:
                words = explain(problem, got[problem.case.name], self.implementation)
            self.headline = (
                problem.headline
                or words.pop("headline", "")
                or (_HEADLINES.get(problem.stage) or f"this does not hold: {problem.expected}")
            )
            self.lines += [("expected", problem.expected), ("got", problem.got), *words.items()]
        else:
            self.headline = _FINDING_HEADLINES.get(first.name, first.name)
            if first.expected:
                self.lines += [("expected", first.expected), ("got", first.got)]
            else:
                self.lines.append(("note", first.message))
        if problem is not None and is_run:
            self.lines.append(("case", problem.case.name))
        listed_parts = {first.name}.union(*(d.parts for d in diagnoses))
        if not is_explained:
            self.lines += [("also", f"{d.name}. {d.next_step}") for d in diagnoses]
        for finding in findings:
            other = problems.get(finding.name)
            if finding.passed or finding.skipped or finding.name in listed_parts:
                continue
            if not (other and problem and _is_similar(other, problem)):
                self.lines.append(("also", f"{finding.name}: {finding.message}"))
        if self.seed is not None and is_run:
            self.lines.append(
                ("again", f'check(..., "{self.exercise}", seed={self.seed}) repeats these inputs')
            )
        self._store_printed(got)
        return self

    def add_picture(self, svg: str, label: str, text: str) -> None:
        """Add a counterexample: a picture, and a line of text before the line with the case."""
        self.picture = svg
        place = next(
            (i for i, (name, _) in enumerate(self.lines) if name in ("case", "also", "again")),
            len(self.lines),
        )
        self.lines.insert(place, (label, text))

    def _explain(self, diagnosis, earlier_got: str | None) -> None:
        got = "" if diagnosis.got == earlier_got else diagnosis.got
        words = {
            "expected": diagnosis.expected,
            "got": got,
            "why": diagnosis.why,
            "try": diagnosis.next_step,
        }
        self.lines += [(label, text) for label, text in words.items() if text]

    def _store_printed(self, got: dict | None) -> None:
        """Keep what the answer printed in the first case, so that debugging prints are shown."""
        if got:
            self.printed = next(iter(got.values())).printed.rstrip()

    # --- reading the report -----------------------------------------------------------------------

    @property
    def head(self) -> str:
        """The first line: verdict, exercise, headline, points."""
        headline = f": {self.headline}" if self.headline else ""
        number = f"   [{self.points:g}/{self.max_points:g} points]" if self.max_points else ""
        return f"{MARKS[self.status]} {self.title}{headline}{number}"

    def rows(self) -> list[tuple[str, str]]:
        """Return the lines below the first, as (label, text)."""
        rows = list(self.lines)
        if len(self.findings) > 1 and not self.passed:
            rows.append(("findings", "   ".join(f"{f.mark} {f.name}" for f in self.findings)))
        if self.printed:
            rows.append(("printed", self.printed))
        return rows

    def __str__(self) -> str:
        return "\n".join(
            [self.head] + [f"  {label:<9} {_indent(text)}" for label, text in self.rows()]
        )

    __repr__ = __str__

    def display(self) -> None:
        """Show the report in a notebook."""
        from IPython import get_ipython
        from IPython.display import display

        self._display_count = getattr(get_ipython(), "execution_count", None)
        display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)

    def _ipython_display_(self) -> None:
        """Show the report as a cell's result, unless ``check`` has shown it in that cell."""
        from IPython import get_ipython

        if self._display_count is None or self._display_count != get_ipython().execution_count:
            self.display()

    def _repr_html_(self) -> str:
        colour = {"passed": "#0072b2", "not_attempted": "#777777"}.get(self.status, "#b35900")
        cells = "".join(
            f'<div style="opacity:.7">{html.escape(label)}</div>'
            f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{html.escape(text)}</div>'
            for label, text in self.rows()
        )
        # a mark stays beside its word
        cells = re.sub("([✓✗–]) ", "\\1\N{NO-BREAK SPACE}", cells)
        picture = f'<div style="margin:.5em 0 .2em">{self.picture}</div>' if self.picture else ""
        return (
            f'<div style="border-left:4px solid {colour};padding:.2em .8em;margin:.2em 0">'
            f"<b>{html.escape(self.head)}</b>"
            '<div style="display:grid;grid-template-columns:max-content minmax(0,1fr);'
            "gap:.1em 1em;"
            f'font-family:monospace;margin-top:.3em">{cells}</div>{picture}</div>'
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data for JSON."""
        return {
            "exercise": self.exercise,
            "status": self.status,
            "points": self.points,
            "max_points": self.max_points,
            "misconception": self.misconception,
            "misconceptions": list(self.misconceptions),
            "headline": self.headline,
            "seed": self.seed,
            "findings": [
                {
                    "name": f.name,
                    "passed": f.passed,
                    "message": f.message,
                    "points": round(f.points, 2),
                }
                for f in self.findings
            ],
        }


def _indent(text: str) -> str:
    """Indent the later lines of a text to stand below its first."""
    return str(text).replace("\n", "\n" + " " * 12)
