"""Findings: which parts an exercise has, which of them hold, and their points."""

from vitedu import exercises
from vitedu.checks.case import Case
from vitedu.checks.checker import Checker
from vitedu.checks.judge import Problem, Stage
from vitedu.checks.report import Finding

RETURNS = {Stage.CALL, Stage.STRUCTURE, Stage.TYPE, Stage.SHAPE}  # the stages of "returns"
_BEFORE_CALL = {Stage.CALLABLE, Stage.SIGNATURE}  # judged without a call


def list_parts(checker: Checker, cases: list[Case]) -> list[str]:
    """List the parts of an exercise in the order of judgement."""
    parts = ["allowed operations"] if checker.forbidden else []
    parts += ["returns", "values"]
    if any(case.part == "values" and case.gradients for case in cases):
        parts.append("gradients")
    for part in [case.part for case in cases] + list(checker.judges):
        if part not in parts:
            parts.append(part)
    return parts


def make_findings(
    checker: Checker, cases: list[Case], parts: list[str], problems: dict[str, Problem]
) -> list[Finding]:
    """Write a finding for every part. A part that depends on a failed one is skipped."""
    maximum = exercises.find(checker.exercise).points
    weights = {part: checker.weights.get(part, 3 if part == "values" else 1) for part in parts}
    weights["allowed operations"] = 0
    if "again" in weights:  # its weight is taken from "values", so that other parts keep theirs
        weights["values"] = max(1, weights["values"] - weights["again"])
    total = sum(weights[part] for part in parts)
    trouble = problems["returns"].stage if "returns" in problems else None
    stop = "allowed operations" in problems or trouble in _BEFORE_CALL
    # Some cases show nothing while an earlier problem exists. A wrong result may pass the device
    # cases by accident, because they compare no values.
    is_wrong = trouble or ("values" in problems and problems["values"].stage is not Stage.UNCHANGED)
    blind: tuple[str, ...] = ("on_accelerator",) if is_wrong else ()
    if trouble is Stage.CALL:
        blind = ("raises", "on_accelerator")
    idle = {case.part for case in cases} - {
        case.part for case in cases if not any(getattr(case, name) for name in blind)
    }
    findings = []
    for part in parts:
        problem = problems.get(part)
        rests_on = "returns" if part in ("values", "gradients") else None
        skipped = problem is None and (
            (stop and part not in problems)
            or (rests_on in problems)
            or (part in ("gradients", "again") and "values" in problems)
            or (part == "again" and "returns" in problems)
            or part in idle
        )
        message = checker.proves.get(part, _PROVES.get(part, f"{part}: as the text asks"))
        if problem:
            message = f"expected {problem.expected}; got {problem.got}   ({problem.case.name})"
        elif skipped:
            message = "not judged: what comes before it does not hold yet"
        share = maximum * weights[part] / total
        findings.append(Finding(part, problem is None and not skipped, message, share, skipped))
    return findings


_PROVES = {
    "allowed operations": "done without what is forbidden here",
    "returns": "runs and returns the right types and shapes",
    "values": "equals the definition on random inputs, which stay unchanged",
    "gradients": "gradients equal those of the definition",
    "again": "called again it looks at the new values, and leaves everything as it was",
    "errors": "impossible sizes are refused with their numbers",
    "any device": "makes no tensor on a device of its own",
}
