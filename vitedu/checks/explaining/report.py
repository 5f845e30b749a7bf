"""What a student reads after a check: findings, points and words, as text and as HTML.

Role: ``Report``. The plain text is complete; the HTML only decorates it. No
reference value is stored here.
"""

import html
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Self

from vitedu import exercises
from vitedu.checks.explaining.common_errors import explain
from vitedu.checks.explaining.diagnose import Diagnosis
from vitedu.checks.judging.findings import Finding
from vitedu.checks.judging.judge import Problem, Stage
from vitedu.checks.observing.drivers import describe_case
from vitedu.checks.observing.observation import Observations
from vitedu.checks.writing.checker import Drawing
from vitedu.checks.writing.mistake_files import read_reports
from vitedu.course.display import show
from vitedu.course.hints import hints_html
from vitedu.course.run_above import find_shell

SPACE = "   "  # between the names of parts
MARKS = {"passed": "✓", "failed": "✗", "error": "✗", "not_attempted": "○"}


def _is_alike(one: Problem, other: Problem) -> bool:
    """Tell whether two problems are so similar that a report shows only the first."""
    return (
        one.got == other.got
        or (one.stage is other.stage and one.stage in (Stage.CALL, Stage.VALUES))
        or (one.stage, one.expected) == (other.stage, other.expected)
    )


def _skip_echoes(
    findings: list[Finding], diagnosis: Diagnosis, problems: dict[str, Problem]
) -> list[Finding]:
    """Leave open what a mistake of the idea spoils besides: polish, or inputs modified again."""
    failed = [f.name for f in findings if f.fails and f.name in diagnosis.parts]
    again = {part for part in failed[1:] if problems[part].stage is Stage.UNCHANGED}
    polish = {f.name for f in findings if f.is_polish and f.name in diagnosis.parts}
    echoes = again | polish if failed else set()
    return [replace(f, skipped=True) if f.name in echoes else f for f in findings]


class Report:
    """The verdict on one answer.

    Attributes:
        exercise: its id.
        status: "passed", "failed", "error" (the answer raised) or "not_attempted".
        points, max_points: the sum over the findings that passed; half at most if one fails.
        remarks: the findings about polish that do not hold; they cost their points and no more.
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
        self.visible: int | None = None  # how many of them are in the first view; None: all
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
        """Whether the idea holds in every part; polish may be missing."""
        return self.status == "passed"

    @property
    def is_flawless(self) -> bool:
        """Whether every part holds, polish too."""
        return self.passed and not self.remarks

    @property
    def remarks(self) -> list[Finding]:
        """What polish is missing, each with its points: ``max_points - points``."""
        return [f for f in self.findings if f.is_polish and not f.passed and not f.skipped]

    @property
    def points(self) -> float:
        """Points earned, to two decimals."""
        if self.is_flawless:
            return self.max_points
        return round(sum(finding.points for finding in self.findings), 2)

    # --- writing the report -----------------------------------------------------------------------

    def end(self, status: str, headline: str, *lines: tuple[str, str]) -> Self:
        """Write the verdict: its status, its headline and the lines below, as (label, text)."""
        self.status, self.headline, self.lines = status, headline, list(lines)
        return self

    def set_not_attempted(self, is_written: bool = False) -> "Report":
        """Say that there is nothing to judge yet, or that code stands beside the stub's error."""
        words = "not attempted yet; later cells use the reference"
        if is_written:
            words = "your code still raises NotImplementedError; delete that line of the stub"
        return self.end("not_attempted", f'{words}; hint("{self.exercise}") helps')

    def set_reference(self) -> "Report":
        """Say that the answer is the reference, which an earlier check handed out."""
        self.is_reference = True
        words = (
            "this is the reference, which the last check handed out: run your own cell above again"
        )
        return self.end("not_attempted", f"{words}; if it ended in an error, nothing was defined")

    def set_passed(self, findings: list[Finding], diagnoses: Sequence[Diagnosis] = ()) -> "Report":
        """Say what was tested, and which polish is missing."""
        self.status, self.implementation = "passed", self._answer
        self._set_findings(findings, diagnoses)
        number, plural = len(self.remarks), "s" * (len(self.remarks) > 1)
        self.headline = f"passed, {number} remark{plural}" if number else "passed"
        self._add_remarks()
        self.visible = number or None
        self.lines += [("tested", f.message) for f in findings if f.passed and f.message]
        return self

    def _set_findings(self, findings: list[Finding], diagnoses) -> None:
        """Keep findings and mistakes; a remark whose mistake is known is told in its words."""
        self.misconceptions = [diagnosis.mistake.id for diagnosis in diagnoses]
        self.misconception = self.misconceptions[0] if self.misconceptions else None
        words = {
            part: f"{d.mistake.name}. {d.mistake.next_step}"
            for d in reversed(diagnoses)
            for part in d.parts
        }
        self.findings = [
            replace(f, message=f"{words[f.name]}   ({f.case})")
            if f.is_polish and f.name in words
            else f
            for f in findings
        ]

    def _add_remarks(self, known: Collection[str] = ()) -> None:
        """List the remarks, but for parts whose problem stands above already."""
        for remark in (remark for remark in self.remarks if remark.name not in known):
            lost = remark.max_points * (1 - remark.credit)
            cost = f" (-{lost:.2g} points)" if round(lost, 2) else ""
            self.lines.append(("remark", f"{remark.name}: {remark.message}{cost}"))

    def set_failed(
        self,
        findings: list[Finding],
        diagnoses: Sequence[Diagnosis],
        problems: dict[str, Problem],
        got: Observations | None = None,
        picture: Drawing | None = None,
    ) -> "Report":
        """Explain the first part that failed, and list each other failed part in one line."""
        self.status = "failed"
        for diagnosis in diagnoses:
            findings = _skip_echoes(findings, diagnosis, problems)
        self._set_findings(findings, diagnoses)
        failed = [finding for finding in findings if finding.fails]
        failed.sort(key=lambda f: problems[f.name].stage is Stage.GRADIENTS)  # values come first
        first, problem = failed[0], problems[failed[0].name]
        names = [finding.name for finding in failed]
        serious = [d for d in diagnoses if not set(d.parts).isdisjoint(names)]
        serious.sort(key=lambda d: min(names.index(part) for part in d.parts if part in names))
        self._add_right([f.message for f in findings if f.passed and f.max_points and f.message])
        explained = [d for d in serious if first.name in d.parts]
        if explained:
            self.headline = explained[0].mistake.name
            self._explain(explained[0], None)
        else:
            self._tell_problem(problem, got)
        is_called = problem.stage > Stage.SIGNATURE
        if picture:
            self.picture = picture.svg
            self.lines.append((picture.label, picture.text))
        if is_called:
            self.lines.append(("case", describe_case(problem.case)))
        self.visible = len(self.lines)
        listed = {first.name}.union(*(d.parts for d in serious))
        for number, diagnosis in enumerate([d for d in serious if d not in explained[:1]], 2):
            self.lines.append((f"mistake {number}", diagnosis.mistake.name))
            self._explain(diagnosis, explained[0].got if explained else None)
        for finding in failed:
            if finding.name not in listed and not _is_alike(problems[finding.name], problem):
                self.lines.append(("also", f"{finding.name}: {finding.message}"))
        alike = {f.name for f in self.remarks if _is_alike(problems[f.name], problem)}
        self._add_remarks(alike | listed)
        if self.seed is not None and is_called:
            words = f'check(..., "{self.exercise}", seed={self.seed}) repeats these inputs'
            self.lines.append(("again", words))
        return self

    def _add_right(self, right: list[str]) -> None:
        """Say what is right: two parts by name, and how many more."""
        others = len(right) - 2
        more = f"; and {others} more part{'s' * (others > 1)}" if others > 0 else ""
        if right:
            self.lines.append(("right", "; ".join(right[:2]) + more))

    def _tell_problem(self, problem: Problem, got: Observations | None) -> None:
        """Tell what does not hold in a part whose mistake is not known."""
        words = explain(problem, got[problem.case.name], self.implementation) if got else {}
        usual = read_reports()["headline"].get(problem.stage.name.lower())
        usual = usual or f"this does not hold: {problem.expected}"
        self.headline = problem.headline or words.pop("headline", "") or usual
        self.lines += [("expected", problem.expected), ("got", problem.got), *words.items()]

    def _explain(self, diagnosis, earlier_got: str | None) -> None:
        got = "" if diagnosis.got == earlier_got else diagnosis.got
        mistake = diagnosis.mistake
        texts = mistake.expected, got, mistake.why, mistake.next_step
        labels = "expected", "got", "why", "try"
        self.lines += [line for line in zip(labels, texts, strict=True) if line[1]]

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
            rows.append(("findings", SPACE.join(f"{f.mark} {f.name}" for f in self.findings)))
        if self.printed:
            rows.append(("printed", self.printed))
        return rows

    def first_view(self) -> list[tuple[str, str]]:
        """Return the rows that a page shows at once: at most 120 words; the rest is folded."""
        printed = [("printed", self.printed)] if self.printed else []
        return self.rows() if self.visible is None else self.lines[: self.visible] + printed

    def __str__(self) -> str:
        rows = self.rows()
        if self.findings and not self.passed and hints_html(self.exercise):
            rows.append(("hint", f'hint("{self.exercise}")'))
        below = "\n" + " " * 12  # the later lines of a text stand below its first
        lines = [f"  {label:<9} {text}".replace("\n", below) for label, text in rows]
        return "\n".join([self.head, *lines])

    __repr__ = __str__

    def display(self) -> None:
        """Show the report in a notebook, print it elsewhere."""
        self._display_count = getattr(find_shell(), "execution_count", None)
        show(str(self), self._repr_html_())

    def _ipython_display_(self) -> None:
        """Show the report as a cell's result, unless ``check`` has shown it in that cell."""
        if self._display_count is None or self._display_count != find_shell().execution_count:
            self.display()

    def _repr_html_(self) -> str:
        colour = {"passed": "#0072b2", "not_attempted": "#777777"}.get(self.status, "#b35900")
        view, first = _grid(self.first_view()), self.first_view()
        if rest := [row for row in self.rows() if row not in first]:
            words = "more" + ": a second mistake" * any(label == "mistake 2" for label, _ in rest)
            view += f'<details><summary style="opacity:.7">{words}</summary>{_grid(rest)}</details>'
        picture = (
            f'<div tabindex="0" style="margin:.5em 0 .2em;overflow-x:auto">{self.picture}</div>'
        )
        return (
            f'<div style="border-left:4px solid {colour};padding:.2em .8em;margin:.2em 0">'
            f"<b>{html.escape(self.head)}</b>{picture if self.picture else ''}{view}"
            f"{hints_html(self.exercise) if self.max_points and not self.passed else ''}</div>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data for JSON."""
        names = "exercise status points max_points misconception misconceptions headline seed"
        findings = [
            {"name": f.name, "passed": f.passed, "message": f.message, "points": round(f.points, 2)}
            for f in self.findings
        ]
        remarks = [
            {"part": f.name, "message": f.message, "points": round(f.max_points - f.points, 2)}
            for f in self.remarks
        ]
        own = {name: getattr(self, name) for name in names.split()}
        lines = dict(reversed(self.lines))  # the first of each label counts
        own |= {label: lines.get(label, "") for label in ("expected", "got", "why", "try")}
        return own | {"findings": findings, "remarks": remarks}


def _grid(rows: list[tuple[str, str]]) -> str:
    """Write rows as two columns. Lines break at blanks, but not inside the name of a part."""
    cells = ""
    for label, text in rows:
        words = html.escape(text)
        if label == "findings":
            style = "display:inline-block;margin-right:1em"
            words = " ".join(f'<span style="{style}">{name}</span>' for name in words.split(SPACE))
        cells += (
            f'<div style="opacity:.7">{html.escape(label)}</div>'
            f'<div style="white-space:pre-wrap;overflow-wrap:anywhere">{words}</div>'
        )
    return (
        '<div style="display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1em 1em;'
        f'font-family:monospace;margin-top:.3em">{cells}</div>'
    )
