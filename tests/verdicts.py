"""For the tests of the checkers: what a report says, in one word."""


def failed_parts(report):
    """Name the findings of a report that failed."""
    return [finding.name for finding in report.findings if not finding.passed]
