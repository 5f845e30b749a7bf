"""vitedu.course.kept: a student's own measurements outlive the kernel."""

from vitedu.course.kept import forget, keep, kept


def test_numbers_are_kept_by_notebook_and_name():
    """The last number of a name counts; another notebook has others."""
    assert kept("04_training") == {}
    keep("04_training", "plain", 0.4)
    keep("04_training", "muon", 0.5)
    keep("04_training", "plain", 0.42)
    keep("01_patches", "box", 0.55)
    assert list(kept("04_training").items()) == [("plain", 0.42), ("muon", 0.5)]


def test_a_number_can_be_forgotten():
    """That of a run that went wrong; an unknown name is no error."""
    keep("04_training", "plain", 0.4)
    forget("04_training", "plain")
    forget("04_training", "plain")
    forget("01_patches", "plain")
    assert kept("04_training") == {}
