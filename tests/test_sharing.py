"""Later runs of one student share processes: fewer of them, and the same grades."""

from pathlib import Path
from textwrap import indent

import pytest
from run_answer import written_answer

from vitedu.course.references import reference_source
from vitedu.exercises import find
from vitedu.grading import judge, student
from vitedu.grading.box.sharing import SharedBox
from vitedu.grading.grades import Submission
from vitedu.grading.intake.extraction import Extraction
from vitedu.grading.student import Parts, grade_submission

pytestmark = pytest.mark.slow

SUPPORT = "import math\nimport os\nimport sys\nimport torch\nfrom torch import nn\n"
COUNT = "sys.loaded = getattr(sys, 'loaded', 0) + 1\n"  # of answers in this process


class Counting:
    """A box that counts its workers."""

    def __init__(self, box):
        self.box, self.started, self.events = box, 0, []
        self.level, self.limits, self.open_separate = box.level, box.limits, box.open_separate

    def worker(self):
        """Give a fresh worker."""
        self.started += 1
        return self.box.worker()


def graded(box, sources):
    """Grade one student's answers; gives the grades and how many workers they took."""
    answers = {id: written_answer(id, source, SUPPORT) for id, source in sources.items()}
    counting = Counting(box)
    submission = Submission("ann", (Path("work.ipynb"),))
    asked, read = [find(id) for id in sources], Extraction(answers)
    result = grade_submission(submission, asked, Parts(), counting, seed=11, extraction=read)
    return {grade.exercise: grade for grade in result.exercises}, counting.started


def doing(effects, name):
    """Give the reference as an answer that does something else whenever it is defined."""
    decorator = f"def meanwhile({name}):\n{indent(effects, ' ' * 4)}    return {name}\n\n\n"
    return f"{decorator}@meanwhile\n{reference_source(find(name))}"


def right(*exercises):
    """Give the references as answers."""
    return {id: reference_source(find(id)) for id in exercises}


def test_later_runs_share_two_processes(box):
    """Three answers: a process each, and two that confirm all of them. Each passed three times."""
    grades, workers = graded(box, right("patchify", "unpatchify", "sincos_positions"))
    assert [(grade.state, grade.runs) for grade in grades.values()] == [("passed", 3)] * 3
    assert workers == 3 + 2


def test_exercises_that_forbid_other_functions_do_not_meet(box):
    """Softmax is taken out of a process for good, and attention may use it."""
    names = ("softmax", "scaled_dot_product_attention", "split_heads", "merge_heads")
    answers = right(*names)
    answers["scaled_dot_product_attention"] = (
        "def scaled_dot_product_attention(q, k, v):\n"
        "    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)\n"
        "    return weights @ v, weights\n"
    )
    grades, workers = graded(box, answers)
    assert {grade.state for grade in grades.values()} == {"passed"}
    assert workers == 4 + 2 * 3


@pytest.mark.parametrize("trouble", ["unpatchify = abs", "os._exit(3)", "del unpatchify"])
def test_an_answer_that_fails_beside_others_is_run_alone(trouble, box):
    """What an earlier answer leaves behind costs the next one no points."""
    answers = right("patchify", "unpatchify", "sincos_positions")
    spoilt = COUNT + f"if sys.loaded > 1:\n    {trouble}\n"
    answers |= {"patchify": doing(COUNT, "patchify"), "unpatchify": doing(spoilt, "unpatchify")}
    grades, workers = graded(box, answers)
    assert [grade.state for grade in grades.values()] == ["passed"] * 3
    assert [grade.runs for grade in grades.values()] == [3, 4, 3]
    # two shared processes for the first; the second's one try there, and the third, which is not
    # tried there any more
    assert workers == 3 + 2 + 3 + 2


def test_an_answer_that_passes_beside_others_alone_is_not_passed(box):
    """The first run of each answer has a process of its own, and it decides."""
    alone = COUNT + "if sys.loaded == 1:\n    unpatchify = abs\n"
    answers = {"patchify": doing(COUNT, "patchify"), "unpatchify": doing(alone, "unpatchify")}
    grades, _ = graded(box, answers)
    assert grades["patchify"].state == "passed"
    assert (grades["unpatchify"].state, grades["unpatchify"].points) == ("failed", 0.0)


THREAD = """import threading, time

def wait():
    while sys.loaded < 2:
        time.sleep(0.01)
    os._exit(3)

threading.Thread(target=wait, daemon=True).start()
"""
ALARM = """import signal
signal.signal(signal.SIGALRM, lambda *rest: os._exit(3))
signal.setitimer(signal.ITIMER_REAL, 0.2)
"""
FULL = """try:
    open(os.environ['TMPDIR'] + '/full', 'wb').write(bytes(40 * 2**20))
except OSError:
    pass
"""
NO_IMPORTS = "sys.meta_path.clear()\nsys.path.clear()\nsys.modules['vitedu.patches'] = None\n"
LEFT_BEHIND = {
    "a thread that ends the process": THREAD,
    "an alarm": ALARM,
    "a torch of its own": "torch.arange = torch.Tensor.reshape = torch.Tensor.permute = abs\n",
    "a full folder": FULL,
    "no way to import": NO_IMPORTS,
    "no output": "os.close(1)\nos.close(2)\nsys.stdout = sys.stderr = None\n",
}


@pytest.mark.parametrize("left", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
def test_what_one_answer_leaves_behind_costs_another_nothing(left, box):
    """Threads, timers, patches, files, closed descriptors: right answers after it pass."""
    answers = {name: doing(COUNT, name) for name in ("patchify", "unpatchify")}
    answers["patchify"] = doing(COUNT + left, "patchify")
    grades, _ = graded(box, answers)
    assert [grade.state for grade in grades.values()] == ["passed", "passed"]


def test_a_run_alone_is_no_second_chance(monkeypatch, box):
    """Beside others it failed: what it showed alone has to show three times more."""
    alone, tried = iter(["memory", "memory", "memory", "crashed"]), []

    def run(task, earlier_runs, lend=None):
        tried.append("alone" if lend is None else "shared")
        return judge._Run(reason="crashed" if lend else next(alone))

    monkeypatch.setattr(judge, "_run_answer", run)
    result = judge.grade_answer(written_answer("unpatchify", "", SUPPORT), 11, SharedBox(box))
    assert (result.reason, result.runs) == ("unstable", 4)
    assert tried == ["alone", "shared", "alone", "alone", "alone"]


def test_answers_that_disturb_each_other_meet_no_more(box):
    """One that fails or hangs beside others does it once in a submission, not in each exercise."""
    names = ("patchify", "unpatchify", "sincos_positions")
    answers = {n: doing(COUNT + f"if sys.loaded > 1:\n    {n} = abs\n", n) for n in names}
    grades, workers = graded(box, answers)
    assert [grade.runs for grade in grades.values()] == [3, 4, 3]


def test_one_student_has_a_budget(monkeypatch, box):
    """Answers that use up their time cannot hold the class up: those after it are open."""
    monkeypatch.setattr(student, "MAX_SECONDS", -1.0)
    grades, workers = graded(box, right("patchify", "unpatchify"))
    outcomes = {(grade.state, grade.reason) for grade in grades.values()}
    assert outcomes == {("not_gradable", "timeout")}
    assert workers == 0 and "more than -1 s together" in grades["patchify"].detail


def test_few_processes_wait(box):
    """What waits keeps memory: two processes, however many exercises there are."""
    with SharedBox(box) as shared:
        for id, source in right("patchify", "softmax", "layer_norm").items():
            assert (
                judge.grade_answer(written_answer(id, source, SUPPORT), 11, shared).state
                == "passed"
            )
            assert len(shared._idle) == 2


def test_luck_still_earns_nothing(box):
    """An answer that is right in every other process is open as soon as two of them disagree."""
    lucky = "import random\nif random.random() < 0.5:\n    unpatchify = abs\n"
    answers = {"unpatchify": doing(lucky, "unpatchify")}
    for _ in range(40):  # each time it is open with a chance of 3 in 8
        result = graded(box, answers)[0]["unpatchify"]
        if result.reason == "unstable":
            return
    raise AssertionError(result)


def test_later_answers_find_the_references_before_them(box):
    """In a shared process too, each exercise sees its own part of the package."""
    uses = "from vitedu.patches import patchify\n\n\n"
    answers = {**right("patchify"), "unpatchify": uses + reference_source(find("unpatchify"))}
    grades, workers = graded(box, answers)
    assert [grade.state for grade in grades.values()] == ["passed", "passed"] and workers == 4
