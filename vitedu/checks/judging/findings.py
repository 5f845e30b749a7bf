"""Findings: which parts an exercise has, which of them hold, and their points.

A part is **idea** or **polish**. The idea is what the exercise's text asks for; only it passes or
fails an answer. Polish is what a colleague would say in a review: it costs points of its own, at
most ``Checker.most_polish`` of all, and is told as a remark.
"""

from dataclasses import dataclass, replace

from vitedu import exercises
from vitedu.checks.judging.judge import Problem, Stage
from vitedu.checks.observing.case import Case
from vitedu.checks.writing.checker import USUAL_POLISH, Checker
from vitedu.checks.writing.mistake_files import read_reports

RETURNS = {Stage.CALL, Stage.STRUCTURE, Stage.TYPE, Stage.SHAPE, Stage.DTYPE}  # of "returns"
_BEFORE_CALL = {Stage.CALLABLE, Stage.SIGNATURE}  # judged without a call
# part -> parts without which it shows nothing
_RESTS_ON = {"values": ["returns"]} | dict.fromkeys(("gradients", "again"), ["returns", "values"])
MOST_FAILED = 0.5  # the largest share of the points that an answer keeps which fails


@dataclass(frozen=True)
class Finding:
    """The verdict on one part."""

    name: str  # of the part
    passed: bool
    message: str  # what was tested, or the evidence against it; "" if it could not be tested
    max_points: float = 0.0
    skipped: bool = False  # not judged, because a part that it depends on failed
    case: str = ""  # the inputs on which it does not hold
    is_polish: bool = False  # if it does not hold, that is a remark and fails no answer
    credit: float = 0.0  # the share of its points that is earned though it does not hold
    scale: float = 1.0  # less if the answer fails, which keeps half of all points at most

    @property
    def points(self) -> float:
        """Points earned."""
        return self.max_points * self.scale * (1.0 if self.passed else self.credit)

    @property
    def fails(self) -> bool:
        """Whether this part fails the answer."""
        return not (self.passed or self.skipped or self.is_polish)

    @property
    def mark(self) -> str:
        """A sign that can be read without colour."""
        return "✓" if self.passed else "–" if self.skipped else "✗"


def list_parts(checker: Checker, cases: list[Case]) -> list[str]:
    """List the parts of an exercise in the order of judgement, those of the idea first."""
    parts = ["allowed operations"] if checker.forbidden else []
    parts += ["returns", "values"]
    if any(case.part == "values" and case.gradients for case in cases):
        parts.append("gradients")
    parts = list(dict.fromkeys([*parts, *(case.part for case in cases)]))
    return sorted(parts, key=lambda part: is_polish(checker, part))


def is_polish(checker: Checker, part: str, stage: Stage = Stage.CALL) -> bool:
    """Tell whether a problem of this part and stage is a remark and fails no answer.

    Wrong numbers for a batch of one are a mistake everywhere, a crash only where the checker says
    so. Numbers of another dtype may be rounded but not wrong, and those of another layout are not
    wrong.
    """
    if stage is Stage.CLOTHES:
        return True
    if part == "batch of one" and stage is not Stage.CALL:
        return False
    if part in ("dtype", "layout") and stage in (Stage.SHAPE, Stage.VALUES):
        return False
    if part == "layout" and stage is Stage.FACTS:
        return False
    return part in checker.polish or (part in USUAL_POLISH and part not in checker.idea)


def make_findings(
    checker: Checker, cases: list[Case], parts: list[str], problems: dict[str, Problem]
) -> list[Finding]:
    """Write a finding for every part. A part that depends on a failed one is skipped."""
    shares = share_points(checker, parts)
    grave = {part: problem for part, problem in problems.items() if problem.stage != Stage.CLOTHES}
    idle = _list_idle_parts(cases, grave)
    is_uncalled = "allowed operations" in grave or (
        "returns" in grave and grave["returns"].stage in _BEFORE_CALL
    )
    findings = []
    for part in parts:
        rests = not grave.keys().isdisjoint(_RESTS_ON.get(part, ()))
        if problem := problems.get(part):
            credit = 0.0 if part in idle else problem.credit
            words = f"expected {problem.expected}; got {problem.got}   ({problem.case.name})"
            finding = Finding(
                part, False, words, shares[part], case=problem.case.name, credit=credit
            )
        elif is_uncalled or part in idle or rests:
            words = "not judged: what comes before it does not hold yet"
            finding = Finding(part, False, words, shares[part], skipped=True)
        else:
            finding = Finding(part, True, words_of(checker, part), shares[part])
        stage = problem.stage if problem else Stage.CALL
        findings.append(replace(finding, is_polish=is_polish(checker, part, stage)))
    return _limit_points(findings)


def _list_idle_parts(cases: list[Case], problems: dict[str, Problem]) -> set[str]:
    """List the parts none of whose cases shows anything while an earlier problem exists.

    A wrong result may pass the device cases by accident, because they compare no values.
    """
    trouble = problems["returns"].stage if "returns" in problems else None
    is_wrong = trouble or ("values" in problems and problems["values"].stage is not Stage.UNCHANGED)
    is_crash = trouble is Stage.CALL
    blind = [c for c in cases if (is_wrong and c.on_accelerator) or (is_crash and c.raises)]
    return {case.part for case in blind} - {case.part for case in cases if case not in blind}


def _limit_points(findings: list[Finding]) -> list[Finding]:
    """Let points follow the verdict: where the idea fails, at most half of them are earned."""
    if not any(finding.fails for finding in findings):
        return findings
    most = MOST_FAILED * sum(finding.max_points for finding in findings)
    earned = sum(finding.points for finding in findings)
    return [replace(f, scale=min(1.0, most / earned)) for f in findings] if earned else findings


def share_points(checker: Checker, parts: list[str]) -> dict[str, float]:
    """Divide the points of an exercise among its parts."""
    weights = {part: checker.weights.get(part, 3 if part == "values" else 1) for part in parts}
    weights["allowed operations"] = 0
    if "again" in weights:  # its weight is taken from "values", so that other parts keep theirs
        weights["values"] = max(1, weights["values"] - weights["again"])
    groups = [
        [part for part in parts if is_polish(checker, part) is kind] for kind in (False, True)
    ]
    totals = [sum(weights[part] for part in group) for group in groups]
    share = min(totals[1] / sum(totals), checker.most_polish)
    maximum = exercises.find(checker.exercise).points
    return {
        part: maximum * of_all * weights[part] / total
        for group, total, of_all in zip(groups, totals, (1 - share, share), strict=True)
        for part in group
    }


def words_of(checker: Checker, part: str) -> str:
    """Say what an answer has shown that passes a part."""
    own = checker.idea | checker.polish
    return own.get(part) or read_reports()["part"].get(part) or f"{part}: as the text asks"
