"""Turn a folder of returned work into one submission for each student.

Role: reads the names of files and folders. It recognises plain files, a folder for each student, a
folder for each assignment, the downloads of Moodle and Canvas, and nbgrader's ``submitted/``.
``extraction`` reads the answers.

Nothing is lost silently. Archives, empty folders, links and other files become flags of their
student or, if they belong to none, problems of the folder. Archives are not unpacked, and symbolic
links are not followed.

References: Moodle names folders ``Full Name_participant_assignsubmission_file_`` (mod/assign,
download of all submissions); Canvas names files ``lastnamefirst_LATE_user_file_name``
(lib/content_zipper.rb).
"""

import os
import re
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from vitedu.exercises import EXERCISES
from vitedu.grading.grades import Flag, Submission

STUDENT_FROM = ("auto", "file", "folder", "moodle", "canvas")
MAX_NOTEBOOKS = 40  # of one student; only the newest are taken
MAX_DEPTH = 12  # nested folders

_NOTEBOOKS = tuple(dict.fromkeys(exercise.notebook for exercise in EXERCISES))
_CHAPTERS = "|".join(re.escape(name.split("_", 1)[1]) for name in _NOTEBOOKS)
_WORD_START = r"(?:^|(?<=[\W_]))"
NOTEBOOK_IN_NAME = re.compile(rf"{_WORD_START}(?:\d{{1,2}}[ _-]?)?({_CHAPTERS})(?=$|[\W_])", re.I)
COPY_MARK = re.compile(r"(?: ?\((\d+)\)|-Copy(\d*)|[ _-]copy ?(\d*))$", re.I)

MOODLE = re.compile(r"(?P<name>[^/]+?)(?:_(?P<id>\d+))?_assignsubmission_(?:file|onlinetext)_?")
CANVAS = re.compile(  # behind an anonymous name stands no number of a student
    r"(?:(?:(?P<late2>late)_)?anon_(?P<anon>[^_]+)|(?P<name>.+?)(?:_(?P<late>late))?_(?P<id>\d+))"
    r"_(?:(?P<file>\d+)_(?P<rest>.+)|(?:text|link)\.html)",
    re.I | re.S,
)
CANVAS_STRICT = re.compile(
    r"(?:[^\W_A-Z]+(?:_LATE)?_\d+|(?:LATE_)?anon_[^_]+)_(?:\d{3,}_.+|text\.html)"
)

_NBGRADER = {"source", "release", "autograded", "feedback", "solution"}
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz")
_WORK_ENDINGS = (*_ARCHIVES, ".py", ".pdf", ".html", ".docx")  # others: an instructor's notes
_IGNORED_NAMES = {"__macosx", "__pycache__", "thumbs.db", "desktop.ini", "timestamp.txt"}


@dataclass(frozen=True)
class Intake:
    """The content of a folder."""

    submissions: list[Submission]  # one for each student, sorted by name
    problems: list[Flag]  # files that belong to no student


@dataclass(frozen=True)
class _Entry:
    """A file, or a folder without files, below the folder that is graded."""

    parts: tuple[str, ...]  # its relative path
    path: Path
    kind: str  # "file", "link", "special", "empty", "deep", "closed"
    order: tuple = ()  # newer is larger

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def label(self) -> str:
        return clean_name("/".join(self.parts))


@dataclass(frozen=True)
class _Owner:
    """The student to whom a file belongs, as far as its name tells."""

    # layout, name or number, what tells namesakes in one folder apart, and that folder
    key: tuple[str, str, str, tuple[str, ...]]
    name: str
    identity: dict[str, str] = field(default_factory=dict)
    late: bool = False

    @property
    def rule(self) -> str:
        return self.key[0]  # the layout that was recognised


def find_submissions(folder: Path, student_from: str = "auto") -> Intake:
    """Sort the files of a folder by student.

    Args:
        folder: of returned work.
        student_from: what names a student: ``file`` or the top ``folder``, the names that
            ``moodle`` or ``canvas`` give, or ``auto``, which tries moodle, canvas, folder and file.
            A name that does not fit the rule is read as folder or file.

    Returns:
        Submissions and problems. Files are oldest first. A student without usable files has flags
        that say why.

    Raises:
        ValueError: the rule is unknown.
        FileNotFoundError, NotADirectoryError: there is no such folder.
    """
    if student_from not in STUDENT_FROM:
        raise ValueError(
            f"student_from must be one of {', '.join(STUDENT_FROM)} (got {student_from!r})."
        )
    root = Path(folder)
    if not root.exists():
        raise FileNotFoundError(f"there is no folder {folder}.")
    if not root.is_dir():
        raise NotADirectoryError(f"{folder} is a file; give the folder with the submissions.")
    root, problems = _enter_nbgrader(root)
    entries = list(_walk(root))
    skip = _has_assignment_folders(entries)
    canvas, moodle = _looks_like_canvas(entries), _moodle_depth(entries)
    owned: dict[tuple, list[tuple[_Entry, _Owner]]] = defaultdict(list)
    for entry in entries:
        parts = entry.parts[1:] if skip and len(entry.parts) > 1 else entry.parts
        owner = _find_owner(entry, parts, student_from, canvas, moodle, root)
        if owner is None:
            problems.append(_flag_unusable(entry))
        else:
            owned[owner.key].append((entry, owner))
    groups = [_build_submission(group, group[0][1]) for group in _group_by_student(owned)]
    return Intake(_mark_namesakes(groups), problems)


def read_folder(folder: Path, student: str, identity: dict[str, str] | None = None) -> Submission:
    """Make one student's submission of everything in a folder, whatever the names say."""
    owner = _Owner(("folder", student, "", ()), clean_name(student), identity or {})
    return _build_submission([(entry, owner) for entry in _walk(Path(folder))], owner)[0]


# --- reading the folder --------------------------------------------------------------------------


def _walk(root: Path, parts: tuple[str, ...] = ()) -> Iterator[_Entry]:
    """Yield every visible entry below a folder. A folder without any is an entry itself."""
    try:
        with os.scandir(root.joinpath(*parts)) as listing:
            items = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        yield _Entry(parts or (root.name,), root.joinpath(*parts), "closed")
        return
    has_entries = False
    for item in items:
        if item.name.startswith(".") or item.name.casefold() in _IGNORED_NAMES:
            has_entries = has_entries or not item.is_dir(follow_symlinks=False)
            continue
        has_entries, own, path = True, (*parts, item.name), Path(item.path)
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            yield _Entry(own, path, "closed")
            continue
        if stat.S_ISLNK(status.st_mode):
            yield _Entry(own, path, "link")
        elif stat.S_ISDIR(status.st_mode):
            if len(own) < MAX_DEPTH:
                yield from _walk(root, own)
            else:
                yield _Entry(own, path, "deep")
        elif stat.S_ISREG(status.st_mode):
            order = (status.st_mtime_ns, _canvas_file(item.name), _copy_number(item.name), own)
            yield _Entry(own, path, "file", order)
        else:
            yield _Entry(own, path, "special")
    if parts and not has_entries:
        yield _Entry(parts, root.joinpath(*parts), "empty")


def _enter_nbgrader(root: Path) -> tuple[Path, list[Flag]]:
    """Return ``submitted/`` if the folder is an nbgrader course, with a flag that says so."""
    names = {entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)}
    course = (root / "nbgrader_config.py").exists() or (root / "gradebook.db").exists()
    if "submitted" not in names or not (course or names & _NBGRADER):
        return root, []
    message = "an nbgrader course: only submitted/ is graded, nothing beside it"
    return root / "submitted", [Flag("layout", message)]


def _has_assignment_folders(entries: Iterable[_Entry]) -> bool:
    """Tell whether the top folders are assignments: all have names of the course's notebooks."""
    tops = {entry.parts[0] for entry in entries if len(entry.parts) > 1}
    return bool(tops) and all(notebook_of(top) and not _strip_notebook(top) for top in tops)


def _looks_like_canvas(entries: Iterable[_Entry]) -> bool:
    names = [entry.name for entry in entries if entry.kind == "file" and is_notebook(entry.name)]
    num_canvas = sum(CANVAS_STRICT.fullmatch(name) is not None for name in names)
    return num_canvas > 0 and 2 * num_canvas >= len(names)


def _moodle_depth(entries: list[_Entry]) -> int:
    """Return the depth of Moodle's names: 0, 1 for several downloads side by side, -1 for none.

    Depth 1 requires that all names there are Moodle's, because a student could have chosen some.
    """
    tops = {entry.parts[0] for entry in entries}
    num_moodle = sum(MOODLE.match(top) is not None for top in tops)
    if num_moodle:
        return 0 if 2 * num_moodle >= len(tops) else -1
    below = [entry.parts[1] for entry in entries if len(entry.parts) > 1]
    return 1 if below and all(MOODLE.match(name) for name in below) else -1


# --- whose it is ---------------------------------------------------------------------------------


def _find_owner(
    entry: _Entry, parts: tuple[str, ...], rule: str, canvas: bool, moodle: int, root: Path
) -> _Owner | None:
    """Find the student to whom an entry belongs; None if its name does not tell."""
    if rule in ("auto", "moodle") and (owner := _find_moodle_owner(entry.parts, moodle)):
        return owner
    # inside a student's folder the student chose the names, and could choose another student's
    canvas = rule == "canvas" or (rule == "auto" and canvas and len(parts) == 1)
    if canvas and (owner := _find_canvas_owner(entry.name)):
        return owner
    in_folder = len(parts) > 1 or entry.kind in ("empty", "deep", "closed")
    if in_folder and rule != "file":
        name, parent = clean_name(parts[0]), entry.parts[: len(entry.parts) - len(parts)]
        return _Owner(("folder", name, parts[0], parent), name)
    if entry.kind == "empty":
        return None
    name = entry.name.casefold()
    if not is_notebook(name) and not name.endswith(_WORK_ENDINGS) and entry.kind == "file":
        return None
    # if the file is named like a notebook of the course, the folder's name stands for the student
    fallback = parts[0] if len(parts) > 1 else root.resolve().name
    student = clean_name(_strip_notebook(_strip_endings(clean_name(entry.name))) or fallback)
    return _Owner(("file", student, "", ()), student)


def _find_moodle_owner(parts: tuple[str, ...], depth: int) -> _Owner | None:
    """Read the name that Moodle gave at this depth; the student chose all deeper names."""
    if not 0 <= depth < len(parts):
        return None
    match = MOODLE.match(parts[depth])
    if not match or not (depth == len(parts) - 1 or match.end() == len(parts[depth])):
        return None
    name, number = clean_name(match["name"]), match["id"] or ""
    identity = {"name": name} | ({"moodle_id": number} if number else {})
    return _Owner(("moodle", name, number, parts[:depth]), name, identity)


def _find_canvas_owner(name: str) -> _Owner | None:
    match = CANVAS.fullmatch(name)
    if not match:
        return None
    number = match["id"] or f"anon_{match['anon']}"
    label = clean_name(match["name"] or number)
    late = bool(match["late"] or match["late2"])
    identity = {"canvas_id": number} | ({"name": label} if match["name"] else {})
    return _Owner(("canvas", number, "", ()), label, identity, late)


def _group_by_student(entries: dict[tuple, list]) -> list[list[tuple[_Entry, _Owner]]]:
    """Group the entries by student.

    Moodle gives a student another number in each assignment, and a Mac writes a name in another
    way. One name with two marks is therefore one student, unless both marks are in one folder.
    """
    alike: dict[tuple, list[tuple]] = defaultdict(list)
    for key in entries:
        alike[key[:2]].append(key)
    groups: list[list[tuple[_Entry, _Owner]]] = []
    for keys in alike.values():
        marks = defaultdict(set)
        for key in keys:
            marks[key[3]].add(key[2])
        namesakes = any(len(group) > 1 for group in marks.values())
        merged: dict[str, list] = defaultdict(list)
        for key in keys:
            merged[key[2] if namesakes else ""] += entries[key]
        groups += merged.values()
    return groups


def _mark_namesakes(submissions: list[tuple[Submission, str]]) -> list[Submission]:
    """Add the number, or the layout, to a name that several students have.

    Two folders of one name stay namesakes, which ``batch`` leaves to a person.
    """
    rules: dict[str, list[str]] = defaultdict(list)
    for submission, rule in submissions:
        rules[submission.student].append(rule)
    marked = []
    for submission, rule in submissions:
        others, identity = rules[submission.student], submission.identity
        mark = identity.get("moodle_id") or identity.get("canvas_id")
        if len(others) > 1 and (mark := mark or (rule if others.count(rule) == 1 else "")):
            submission = replace(submission, student=f"{submission.student} ({mark})")
        marked.append(submission)
    return sorted(marked, key=lambda submission: submission.student)


# --- one student ---------------------------------------------------------------------------------


def _build_submission(owned: list[tuple[_Entry, _Owner]], owner: _Owner) -> tuple[Submission, str]:
    """Make one student's submission; return it with the layout that named the student."""
    entries, flags = [entry for entry, _ in owned], []
    usable = [entry for entry in entries if entry.kind == "file" and is_notebook(entry.name)]
    usable.sort(key=lambda entry: entry.order)
    if len(usable) > MAX_NOTEBOOKS:
        older, usable = usable[:-MAX_NOTEBOOKS], usable[-MAX_NOTEBOOKS:]
        message = f"{len(older)} notebooks left out: more than {MAX_NOTEBOOKS} of one student"
        flags.append(Flag("too_many_files", message))
    flags += _flag_duplicates(usable)
    for entry in usable:
        if not entry.name.casefold().endswith(".ipynb"):
            flags.append(
                Flag("renamed", f"{entry.label} is read as a notebook, whatever its ending")
            )
    others = []
    for entry in entries:
        if entry.kind == "file" and not is_notebook(entry.name):
            if entry.name.casefold().endswith(_ARCHIVES):
                flags.append(_flag_unusable(entry))
            else:
                others.append(entry.label)
        elif entry.kind != "file":
            flags.append(_flag_unusable(entry))
    if others:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        flags.append(
            Flag("other_file", f"no notebook, not looked at: {', '.join(others[:5])}{more}")
        )
    if not usable:
        flags.append(Flag("no_notebook", "nothing that was handed in is a notebook (.ipynb)"))
    if any(own.late for _, own in owned):
        flags.append(Flag("late", "Canvas calls it late"))
    identity = dict(owner.identity)
    for _, own in owned:
        for key, value in own.identity.items():
            known = identity.setdefault(key, value)
            if key == "moodle_id" and value not in known.split():  # keep one for each assignment
                identity[key] = f"{known} {value}"
    files = tuple(entry.path for entry in usable)
    place = "/".join((*owner.key[3], owner.key[2] or "".join(entry.name for entry in entries[:1])))
    return Submission(owner.name, files, identity, tuple(flags), place), owner.rule


def _flag_duplicates(usable: list[_Entry]) -> list[Flag]:
    claims = defaultdict(list)
    for entry in usable:
        claims[notebook_of(entry.name) or _strip_endings(entry.name)].append(entry.label)
    return [
        Flag(
            "two_files",
            f"{len(names)} files for {clean_name(claim)}, the newest wins: {', '.join(names)}",
        )
        for claim, names in claims.items()
        if len(names) > 1
    ]


def _flag_unusable(entry: _Entry) -> Flag:
    if entry.kind == "file" and entry.name.casefold().endswith(_ARCHIVES):
        return Flag("archive", f"{entry.label} is an archive; unpack it and grade again")
    words = {
        "link": f"{entry.label} is a symbolic link, which is not followed",
        "special": f"{entry.label} is no regular file",
        "empty": f"the folder {entry.label} is empty",
        "deep": f"{entry.label} lies more than {MAX_DEPTH} folders deep",
        "closed": f"{entry.label} cannot be read",
        "file": f"{entry.label} is no notebook and bears no student's name",
    }
    kind = {"file": "other_file", "deep": "too_deep", "empty": "empty_folder"}
    return Flag(kind.get(entry.kind, entry.kind), words[entry.kind])


# --- names ---------------------------------------------------------------------------------------


def is_notebook(name: str) -> bool:
    """Tell whether a file is a notebook by its name, even if a browser added an ending.

    Example:
        >>> is_notebook("anna.ipynb"), is_notebook("anna.ipynb.txt"), is_notebook("anna.zip")
        (True, True, False)
    """
    return name.casefold().endswith((".ipynb", ".ipynb.txt", ".ipynb.json"))


def notebook_of(name: str) -> str:
    """Find the course's notebook that a file name contains; "" if there is none.

    Example:
        >>> notebook_of("02_attention_anna (1).ipynb"), notebook_of("anna.ipynb")
        ('02_attention', '')
    """
    match = NOTEBOOK_IN_NAME.search(name)
    chapter = match[1].casefold() if match else None
    return next((known for known in _NOTEBOOKS if known.split("_", 1)[1] == chapter), "")


def clean_name(name: str) -> str:
    """Make a file name safe for text: composed, without control characters or broken bytes.

    Example:
        >>> clean_name("Zoe\\u0308\\n")
        'Zoë'
    """
    text = unicodedata.normalize("NFC", name.encode("utf-8", "backslashreplace").decode())
    return (
        "".join("\ufffd" if unicodedata.category(c) in ("Cc", "Cf") else c for c in text.strip())
        or "?"
    )


def _strip_endings(name: str) -> str:
    """Remove endings and the marks of copies, such as "(1)"."""
    stem = re.sub(r"(?i)(?:\.ipynb)?\.(?:ipynb|txt|json|tar\.gz|\w{1,5})$", "", name)
    while match := COPY_MARK.search(stem):
        stem = stem[: match.start()]
    return stem


def _strip_notebook(stem: str) -> str:
    """Remove the name of the course's notebook: "anna_01_patches" becomes "anna"."""
    rest = NOTEBOOK_IN_NAME.sub("\0", stem, count=1)
    rest = re.sub(r"[\s_.\-–]*\x00[\s_.\-–]*", " ", rest).strip(" _-.")
    match = re.fullmatch(r"\(([^()]+)\)|\[([^\[\]]+)\]", rest)  # "01_patches (Anna)"
    return (match[1] or match[2]).strip() if match else rest


def _copy_number(name: str) -> int:
    match = COPY_MARK.search(re.sub(r"(?i)\.ipynb.*$", "", name))
    return int(next((g for g in match.groups() if g), "1")) if match else 0


def _canvas_file(name: str) -> int:
    match = CANVAS.fullmatch(name)
    return int(match["file"]) if match and match["file"] else 0
