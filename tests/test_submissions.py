"""Reading names: who handed in what, in every layout that platforms give, and nothing lost."""

import os

from vitedu.grading.intake.submissions import clean_name, find_submissions, stem_of


def put(root, *names, content="{}"):
    """Write files below a folder."""
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        os.utime(path, ns=(10**18 + age * 10**9, 10**18 + age * 10**9))
    return root


def found(root):
    """Give student -> names of files."""
    submissions = find_submissions(root).submissions
    return {each.student: [path.name for path in each.files] for each in submissions}


def kinds(root):
    """Give student -> kinds of flags."""
    submissions = find_submissions(root).submissions
    return {each.student: [flag.kind for flag in each.flags] for each in submissions}


def test_plain_files_are_named_by_their_stem(tmp_path):
    """The course's own notebook names are no part of a student's."""
    put(tmp_path, "anna.ipynb", "bob_01_patches.ipynb", "02_attention-bob.ipynb", "Zoë K.ipynb")
    assert found(tmp_path) == {
        "Zoë K": ["Zoë K.ipynb"],
        "anna": ["anna.ipynb"],
        "bob": ["bob_01_patches.ipynb", "02_attention-bob.ipynb"],
    }


def test_notebooks_with_the_courses_names_alone_belong_to_one_student(tmp_path):
    """A folder of one's own work is graded under the folder's name."""
    put(tmp_path / "anna", "01_patches.ipynb", "02_attention.ipynb")
    assert found(tmp_path / "anna") == {"anna": ["01_patches.ipynb", "02_attention.ipynb"]}


def test_folder_a_student_holds_all_notebooks_of_one(tmp_path):
    """Sub-folders belong to the student as well."""
    put(tmp_path, "anna/01_patches.ipynb", "anna/more/02_attention.ipynb", "bob/x.ipynb")
    anna = ["01_patches.ipynb", "02_attention.ipynb"]
    assert found(tmp_path) == {"anna": anna, "bob": ["x.ipynb"]}


def test_folder_an_assignment_is_no_student(tmp_path):
    """Folders that are named as the notebooks are looked into."""
    put(tmp_path, "01_patches/anna.ipynb", "02_attention/anna.ipynb", "02_attention/bob.ipynb")
    assert {name: len(files) for name, files in found(tmp_path).items()} == {"anna": 2, "bob": 1}


MOODLE = "_assignsubmission_file_"


def test_moodle_folders_and_flat_files(tmp_path):
    """The participant's number stays, for the grading worksheet."""
    flat = f"Zoë O'Hara_7654321{MOODLE}02_attention.ipynb"
    text = "Bo Xu_42_assignsubmission_onlinetext_/onlinetext.html"
    put(tmp_path, f"Ann Lee_1234567{MOODLE}/01_patches.ipynb", flat, text)
    assert found(tmp_path) == {"Ann Lee": ["01_patches.ipynb"], "Bo Xu": [], "Zoë O'Hara": [flat]}
    first = find_submissions(tmp_path).submissions[0]
    assert first.identity == {"name": "Ann Lee", "moodle_id": "1234567"}


def test_moodle_numbers_anew_for_each_assignment_and_never_twice_in_one(tmp_path):
    """Namesakes are two students; one student of two assignments is one."""
    put(tmp_path / "one", f"Ann Lee_1{MOODLE}/a.ipynb", f"Ann Lee_2{MOODLE}/a.ipynb")
    assert sorted(found(tmp_path / "one")) == ["Ann Lee (1)", "Ann Lee (2)"]
    names = f"A1/Ann Lee_1{MOODLE}/01_patches.ipynb", f"A2/Ann Lee_8{MOODLE}/02_attention.ipynb"
    (submission,) = find_submissions(put(tmp_path / "two", *names)).submissions
    assert (submission.student, len(submission.files)) == ("Ann Lee", 2)
    assert submission.identity["moodle_id"] == "1 8"


def test_canvas_names(tmp_path):
    """User number, late marker, anonymous grading, online text."""
    lee = "leeann_12345_678901_01_patches-1.ipynb", "leeann_12345_678902_02_attention.ipynb"
    others = "xubo_LATE_777_678903_work.ipynb", "anon_k3Yz_678904_work.ipynb"
    put(tmp_path, *lee, *others, "müllereva_888_text.html")
    counts = {name: len(files) for name, files in found(tmp_path).items()}
    assert counts == {"anon_k3Yz": 1, "leeann": 2, "müllereva": 0, "xubo": 1}
    assert "late" in kinds(tmp_path)["xubo"] and "late" not in kinds(tmp_path)["leeann"]
    identity = find_submissions(tmp_path).submissions[1].identity
    assert identity == {"canvas_id": "12345", "name": "leeann"}


def test_names_that_only_look_like_canvas_are_files(tmp_path):
    """Numbers in one name of several are no layout."""
    put(tmp_path, "anna_2024_10_notes.ipynb", "bob.ipynb", "cy.ipynb")
    assert sorted(found(tmp_path)) == ["anna_2024_10_notes", "bob", "cy"]


def test_submitted_of_nbgrader_is_folders(tmp_path):
    """A student's name stands at the top, and its own record is no work."""
    put(tmp_path, "anna/ps1/01_patches.ipynb", "anna/ps1/timestamp.txt")
    assert found(tmp_path) == {"anna": ["01_patches.ipynb"]} and kinds(tmp_path) == {"anna": []}


def test_two_files_for_one_notebook_are_flagged_and_the_newest_is_last(tmp_path):
    """The later download does not hide the earlier one."""
    put(tmp_path, "anna/01_patches (1).ipynb", "anna/01_patches.ipynb", "bob/01_patches.ipynb")
    assert found(tmp_path)["anna"] == ["01_patches (1).ipynb", "01_patches.ipynb"]
    put(tmp_path, "bob/01_patches_more.ipynb")  # the other file of it, no second one
    assert kinds(tmp_path) == {"anna": ["two_files"], "bob": []}
    put(tmp_path / "flat", "cy_01_patches.ipynb", "cy_01_patches_more.ipynb")
    assert kinds(tmp_path / "flat") == {"cy": []}
    assert "the newest wins" in find_submissions(tmp_path).submissions[0].flags[0].message


def test_links_are_not_followed(tmp_path):
    """Neither to a file elsewhere nor to a folder; both are told."""
    secret = put(tmp_path / "elsewhere", "key.ipynb")
    root = put(tmp_path / "class", "anna/01_patches.ipynb")
    (root / "anna" / "02_attention.ipynb").symlink_to(secret / "key.ipynb")
    (root / "bob").symlink_to(secret)
    (root / "cy.ipynb").symlink_to("/dev/zero")
    assert found(root) == {"anna": ["01_patches.ipynb"], "bob": [], "cy": []}
    lost = ["link", "no_notebook"]
    assert kinds(root) == {"anna": ["link"], "bob": lost, "cy": lost}


def test_what_can_not_be_used_is_told_and_not_opened(tmp_path):
    """Archives, empty folders, other files, pipes: a named finding for each."""
    names = "anna.zip bob/notes.py cy/work.tar.gz roster.csv dee.ipynb.txt".split()
    root = put(tmp_path, *names)
    (root / "eve").mkdir()
    (root / "fay" / ".ipynb_checkpoints").mkdir(parents=True)
    put(root, "fay/.ipynb_checkpoints/x-checkpoint.ipynb", ".DS_Store", "__MACOSX/._anna.ipynb")
    os.mkfifo(root / "gus.ipynb")
    assert kinds(root) == {
        "anna": ["archive", "no_notebook"],
        "bob": ["other_file", "no_notebook"],
        "cy": ["archive", "no_notebook"],
        "dee": [],
        "eve": ["empty_folder", "no_notebook"],
        "fay": ["empty_folder", "no_notebook"],
        "gus": ["special", "no_notebook"],
    }
    (problem,) = find_submissions(root).problems
    assert "roster.csv" in problem.message


def test_what_begins_with_a_dot_is_named_and_not_opened(tmp_path):
    """A file, a folder with files, and one that belongs to nobody; not what systems write."""
    put(tmp_path, "anna/01_patches.ipynb", "anna/.mine.ipynb", "anna/.git/x.ipynb", ".b.ipynb")
    put(tmp_path, "anna/.DS_Store", "anna/._01_patches.ipynb")
    (anna,) = find_submissions(tmp_path).submissions
    assert [path.name for path in anna.files] == ["01_patches.ipynb"]
    words = [flag.message for flag in anna.flags if flag.kind == "hidden"]
    assert [message.split()[0] for message in words] == ["anna/.git", "anna/.mine.ipynb"]
    (problem,) = find_submissions(tmp_path).problems
    assert problem.message == ".b.ipynb begins with a dot and is not looked at"


def test_names_become_text(tmp_path):
    """Broken bytes and control characters do not reach a report."""
    assert clean_name("a\nb\x1b[31m\u202e") == "a\ufffdb\ufffd[31m\ufffd"
    assert clean_name(os.fsdecode(b"caf\xe9")).encode("utf-8")
    assert clean_name("half a sign \ud800").encode("utf-8")
    assert clean_name("\n") == "?"
    put(tmp_path, "Zoe\u0308_01_patches.ipynb", "Zo\u00eb_02_attention.ipynb")
    assert len(found(tmp_path)["Zo\u00eb"]) == 2


def test_notebook_of_reads_the_courses_names():
    """By number and chapter, or chapter alone, never inside a word."""
    assert stem_of("03_encoder.ipynb") == "03_encoder"
    assert stem_of("anna-Training.ipynb") == "04_training"
    assert stem_of("constraining.ipynb") == ""
    assert stem_of("anna_01_Patches_more-2.ipynb") == "01_patches_more"


def test_a_folder_or_file_named_like_a_download_makes_nobody_else(tmp_path):
    """A platform's names count where it puts them, not where a student chooses them."""
    moodle = f"anna/Bob_123{MOODLE}/01_patches.ipynb", f"carl/deep/Anna_9{MOODLE}/01_patches.ipynb"
    canvas = "anna/bob_123_456_02_attention.ipynb", "anna/carl_9_456_x.ipynb"
    put(tmp_path, *moodle, *canvas, "bob/01_patches.ipynb")
    assert list(found(tmp_path)) == ["anna", "bob", "carl"]
    assert "Dan" not in found(put(tmp_path, f"Dan_4{MOODLE}x.ipynb"))


def test_names_keep_their_signs(tmp_path):
    """Brackets, apostrophes and dots belong to a name, whatever stands around the notebook's."""
    names = {
        "Anna O'Brien (Erasmus) 01_patches.ipynb": "Anna O'Brien (Erasmus)",
        "01_patches (Zoë d'Arc).ipynb": "Zoë d'Arc",
        "01_patches_[guest] Bob.ipynb": "[guest] Bob",
        "Jr. Carl [b].ipynb": "Jr. Carl [b]",
    }
    assert set(found(put(tmp_path, *names))) == set(names.values())
