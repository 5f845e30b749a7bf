"""The page a student gets: thankful to read, harmless to open, nothing secret in it."""

import base64
import re
from html.parser import HTMLParser

import jinja2
import pytest
from made_class import SVG, exercise_grade, submission_grade

from vitedu.exercises import EXERCISES, find
from vitedu.grading.grades import REASONS, Flag, not_handed_in
from vitedu.grading.pages.feedback import ADVICE, feedback_page
from vitedu.grading.pages.skeleton import clean, grade_kind, render, text

HOSTILE = "</title></style><script>alert(1)</script><img src=http://x onerror=alert(1)>"
HOSTILE += "\u202e\x1b[2J&amp;"
ALLOWED = (
    "html head meta title style body main header nav section footer h1 h2 h3 p b a div span small"
)
ALLOWED += " code pre br ul li dl dt dd bdi table thead tbody tr th td"
ALLOWED += " label input"  # which order, by style alone
ALLOWED += " svg rect line text defs pattern desc img"


class Tags(HTMLParser):
    """Collects tags, attributes and text; complains about tags that are not closed."""

    VOID = {"meta", "br", "img", "link", "rect", "line", "input"}

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def said(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def assert_harmless(source):
    """No script, no address but its own, no handler; loads nothing and says so itself."""
    parsed = Tags(source)
    assert set(parsed.tags) <= set(ALLOWED.split())
    for name, value in parsed.attributes:
        assert not name.startswith("on") and name not in ("srcset", "action")
        assert name != "src" or re.fullmatch(r"data:image/svg\+xml;base64,[\w+/=]*", value)
        if name == "href":
            assert re.fullmatch(r"#[\w]+|examples\.html|feedback/[a-z0-9-]+\.html", value)
    assert "default-src 'none'" in source
    harmless = source.replace("http://www.w3.org/2000/svg", "").replace("src=http://x", "")
    assert "http:" not in harmless
    return parsed


def everything():
    """One of each state, with hostile text wherever a student can put some."""
    flag = Flag("duplicate", HOSTILE)
    lines = [[label, HOSTILE] for label in ("expected", "got", "why", "case", "also", "order")]
    lines.append(["again", "check(..., seed=987654) repeats these inputs"])
    fields = {"lines": lines, "headline": HOSTILE, "printed": HOSTILE, "flags": [flag]}
    picture = f"{SVG[:-6]}<title>is &quot;1&quot; &lt; 2?</title><script>1</script></svg>"
    grades = [
        exercise_grade(),
        exercise_grade("unpatchify", "failed", **fields),
        exercise_grade("linear_from_conv", "failed", points=0.0, attempted=False),
        exercise_grade("tokens_at_224", "failed", points=0.0, picture=picture),
        exercise_grade("softmax", "not_gradable", detail=HOSTILE),
    ]
    others = {"files": [HOSTILE], "isolation": HOSTILE, "versions": {HOSTILE: HOSTILE}}
    return submission_grade(HOSTILE, grades, flags=[flag], **others)


def test_what_a_student_typed_is_harmless():
    """Names, files, messages, prints, pictures: all text, no tag, turned line or terminal code.

    A picture's title stands in place of it.
    """
    source = feedback_page(everything())
    parsed = assert_harmless(source)
    assert ("alt", 'is "1" < 2?') in parsed.attributes
    assert "alert(1)" in parsed.said
    assert "\u202e" not in source and "\x1b" not in source
    assert source.encode("utf-8")


def test_half_characters_do_not_stop_a_page():
    """A file name that is not UTF-8."""
    assert feedback_page(submission_grade("a\udcff")).encode("utf-8")


def test_seed_of_the_class_is_secret():
    """Neither the number nor the line that would repeat the inputs."""
    for grade in (everything(), submission_grade(exercises=[exercise_grade(state="failed")])):
        source = feedback_page(grade)
        assert "987654" not in source and "repeats these inputs" not in source


def test_points_come_first_and_add_up():
    """The sum, the maximum, and what is open, before any exercise."""
    page = Tags(feedback_page(everything())).said
    head = page[: page.index("Where the next points are")]
    assert "7.5 of 19 points" in head and "? 4 points are open" in head
    assert "1 exercise could not be graded by machine. That is not a 0" in head
    assert "1 of 5 exercises passed" in head


def test_where_everything_is_open_no_zero_is_shown():
    """The largest figure of the page would be read as a grade."""
    grades = [exercise_grade(reason="unreadable", state="not_gradable", runs=0)]
    source = feedback_page(submission_grade(exercises=grades))
    assert "<b>open</b> of 6 points" in source and "<b>0</b>" not in source
    assert "only your answers ran" not in source


def test_passed_exercise_says_what_that_proves():
    """The proofs of the report."""
    grade = submission_grade(exercises=[exercise_grade()])
    page = Tags(feedback_page(grade)).said
    assert "equals the definition on random inputs" in page
    assert "Where the next points are" not in page and "Try it yourself" not in page


def test_failed_exercise_says_what_why_and_what_next():
    """Mistake, evidence, explanation, next step, what holds already, and a drawing."""
    source = feedback_page(submission_grade(exercises=[exercise_grade(state="failed")]))
    page = Tags(source).said
    for words in (
        "rows and columns are swapped",
        "what should hold row first",
        "what your answer does 7/9 values differ",
        "why it matters Order matters.",
        "next step Print the shape.",
        "on this input 2 images of 6 x 6",
        "What holds already: runs and returns the right types",
        "check(patchify)",
        "4.5 more: rows and columns are swapped",
    ):
        assert words in page
    assert base64.b64encode(SVG.encode()).decode() in source


def test_no_next_step_is_invented_for_an_unknown_mistake():
    """A hint that does not follow from what happened misleads."""
    grade = exercise_grade(state="failed", lines=[["got", "7/9 values differ"]])
    page = Tags(feedback_page(submission_grade(exercises=[grade]))).said
    assert "next step" not in page and find("patchify").hints[0][:40] not in page


def test_the_students_own_code_stands_beside_the_finding():
    """With file and cell; the line of an error is marked; a passed exercise shows none."""
    code = "\n\ndef patchify(images, patch_size):\n    return images / '<b>'\n"
    lines = [["got", "TypeError: unsupported   (line 4: return images / '<b>')"]]
    grade = exercise_grade(state="failed", lines=lines, code=code, place="a.ipynb, cell 7")
    source = feedback_page(submission_grade(exercises=[grade]))
    assert "<bdi>a.ipynb, cell 7</bdi></small></h3>" in source
    assert "<span>  3</span> def patchify(images, patch_size):" in source
    assert "<span>  4</span> <b>    return images / &#39;&lt;b&gt;&#39;</b>" in source
    assert_harmless(source)


def test_a_notebook_that_was_not_handed_in_is_no_open_point():
    """It is a 0, and the page says why."""
    grade = not_handed_in(find("patchify"), "no file holds notebook 01_patches")
    assert (grade.state, grade.points) == ("failed", 0.0)
    page = Tags(feedback_page(submission_grade(exercises=[grade]))).said
    assert "This notebook was not handed in." in page and "points are open" not in page


def test_untouched_stub_is_no_failure():
    """It says so, with a first step and the minutes it takes."""
    grade = exercise_grade(state="failed", points=0.0, attempted=False, lines=[], findings=[])
    page = Tags(feedback_page(submission_grade(exercises=[grade]))).said
    assert "The cell is as you got it. It takes about 25 minutes." in page
    assert "left as it was" in page and "not right yet" not in page


@pytest.mark.parametrize("reason", REASONS)
def test_what_could_not_be_graded_says_why_and_what_happens(reason):
    """The reason in words, that nothing is lost, and for what a student can mend, how."""
    grade = exercise_grade("patchify", "not_gradable", reason=reason)
    page = Tags(feedback_page(submission_grade(exercises=[grade]))).said
    assert REASONS[reason] in page and "6 points are open" in page
    assert "your instructor" in page.lower()
    assert (reason in ADVICE) == ("what you can do" in page)


def test_what_is_open_for_one_reason_is_told_once():
    """Every exercise is named, the reason stands there once, links still lead there."""
    gone = {"reason": "unreadable", "detail": "no JSON"}
    grades = [exercise_grade(each.id, "not_gradable", **gone) for each in EXERCISES[:9]]
    source = feedback_page(submission_grade(exercises=grades))
    page, points = Tags(source).said, sum(each.points for each in EXERCISES[:9])
    assert page.count(REASONS["unreadable"]) == 1 and f"{points} points are open until then" in page
    for exercise in EXERCISES[:9]:
        assert source.count(f'id="{exercise.id}"') == 1
    grades[0].detail = "another"
    page = Tags(feedback_page(submission_grade(exercises=grades))).said
    assert page.count("not a notebook that can") == 2


def test_suspicions_are_not_for_the_student():
    """Only remarks on how the answer was found are shown."""
    flags = [Flag("similar", "as Bob's"), Flag("like_reference", "copied")]
    flags.append(Flag("duplicate", "the last of two cells counts"))
    grade = submission_grade(exercises=[exercise_grade(flags=flags)], flags=flags)
    page = Tags(feedback_page(grade)).said
    assert "the last of two cells counts" in page
    assert "as Bob's" not in page and "copied" not in page


def test_colour_never_speaks_alone():
    """Each state has a sign and a word of its own on the page."""
    page = Tags(feedback_page(everything())).said
    for sign, word in (("✓", "passed"), ("◐", "partly right"), ("✗", "not right yet")):
        assert f"{sign} {word}" in page
    assert "○ left as it was" in page and "? could not be graded" in page
    states = {grade_kind(grade) for grade in everything().exercises}
    assert states == {"passed", "partly", "failed", "untouched", "not_gradable"}


def test_small_helpers():
    """Text keeps tabs and lines; a page escapes its values and misses none of them."""
    assert clean("a\tb\nc\r\nd") == "a\tb\nc\nd"
    assert text("<b>\x1b", 3) == "<b> … (1 more characters)"
    source = render("points_only.html", title="<b>", grade=submission_grade("'\"<>&"))
    assert "<title>&lt;b&gt;</title>" in source and "<h1>&#39;&#34;&lt;&gt;&amp;</h1>" in source
    with pytest.raises(jinja2.UndefinedError):
        render("points_only.html", title="no grade")
