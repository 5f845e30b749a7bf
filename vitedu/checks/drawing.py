"""Counterexamples as pictures: small SVG drawings that go with a report.

Role: one function a picture, ``(case, observation, ids) -> SVG text or ""``. A drawing shows where the student's answer
put things, never the values that were expected.
"""

from vitedu.checks.probing import Case, Observation


def draw_patch_order(case: Case, got: Observation, ids: list[str]) -> str:
    """Number the patches in the order of the answer beside the reading order; circle the first difference."""
    return ""
