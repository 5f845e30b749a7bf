"""Turn a folder of returned work into one submission for each student.

Role: reads the names of files and folders. It recognises plain files, a folder for each student, a
folder for each assignment, and the downloads of Moodle and Canvas.
``extraction`` reads the answers.

Nothing is lost silently. Archives, empty folders, links, hidden and other files become flags of
their student or, if they belong to none, problems of the folder. Archives are not unpacked, and
symbolic links are not followed.

References: Moodle names folders ``Full Name_participant_assignsubmission_file_`` (mod/assign,
download of all submissions); Canvas names files ``lastnamefirst_LATE_user_file_name``
(lib/content_zipper.rb).
"""

import os
import re
import stat
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from vitedu.exercises import EXERCISES, MORE
from vitedu.grading.grades import WORDS, Flag, Submission

MAX_NOTEBOOKS = 40  # of one student; only the newest are taken
MAX_DEPTH = 12  # nested folders; words.toml says it too

_NOTEBOOKS = {exercise.chapter: exercise.notebook for exercise in EXERCISES}
_WORD_START, _CHAPTER = r"(?:^|(?<=[\W_]))", f"({'|'.join(_NOTEBOOKS)})"
NOTEBOOK_IN_NAME = re.compile(
    rf"{_WORD_START}(?:\d{{1,2}}[ _-]?)?{_CHAPTER}(_{MORE})?(?=$|[\W_])", re.I
)
COPY_MARK = re.compile(r"(?: ?\((\d+)\)|-Copy(\d*)|[ _-]copy ?(\d*))$", re.I)

# a download's name of a student's folder, with all below it, or of a file
MOODLE = re.compile(
    r"(?P<name>[^/]+?)(?:_(?P<id>\d+))?_assignsubmission_(?:file|onlinetext)_?(?:/.*|[^/]*)", re.S
)
CANVAS = re.compile(  # behind an anonymous name stands no number of a student
    r"(?:(?:(?P<late2>late)_)?anon_(?P<anon>[^_]+)|(?P<name>.+?)(?:_(?P<late>late))?_(?P<id>\d+))"
    r"_(?:(?P<file>\d+)_(?P<rest>.+)|(?:text|link)\.html)",
    re.I | re.S,
)
CANVAS_STRICT = re.compile(
    r"(?:[^\W_A-Z]+(?:_LATE)?_\d+|(?:LATE_)?anon_[^_]+)_(?:\d{3,}_.+|text\.html)"
)

_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".xz")
_WORK_ENDINGS = (".py", ".pdf", ".html", ".docx")  # others: an instructor's notes
# what systems and programs write; nobody hands it in
_IGNORED = re.compile(
    r"(?is)__macosx|__pycache__|thumbs\.db|desktop\.ini|timestamp\.txt"
    r"|\.(_.*|ds_store|ipynb_checkpoints)"
)


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
    kind: str  # "notebook", or that of its flag
    order: tuple = ()  # newer is larger

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def label(self) -> str:
        return clean_name("/".join(self.parts))

    @property
    def flag(self) -> Flag:
        return Flag(self.kind, WORDS["flags"][self.kind]["says"].format(self.label))


@dataclass(frozen=True)
class _Owner:
    """The student to whom a file belongs, as far as its name tells."""

    key: tuple[str, str]  # the layout that was recognised, and the name or number
    name: str
    identity: dict[str, str] = field(default_factory=dict)
    late: bool = False
    mark: str = ""  # what tells namesakes in one folder apart
    folder: tuple[str, ...] = ()  # that folder


_Owned = list[tuple[_Entry, _Owner]]


def find_submissions(folder: Path) -> Intake:
    """Sort the files of a folder of returned work by student.

    A name is what Moodle or Canvas give, else that of the top folder, else that of the file.

    Returns:
        Submissions and problems. Files are oldest first. A student without usable files has flags
        that say why.
    """
    entries = list(_walk(folder))
    layout = _Layout(entries, folder.resolve().name)
    owners = [(entry, layout.find_owner(entry)) for entry in entries]
    owned = [(entry, owner) for entry, owner in owners if owner]
    return Intake(_group_by_student(owned), [e.flag for e, owner in owners if not owner])


def read_folder(folder: Path, student: str, identity: dict[str, str] | None = None) -> Submission:
    """Make one student's submission of everything in a folder, whatever the names say."""
    owner = _Owner(("folder", student), clean_name(student), identity or {})
    return _build_submission([(entry, owner) for entry in _walk(Path(folder))], owner)


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
        if _IGNORED.fullmatch(item.name):
            has_entries = has_entries or not item.is_dir(follow_symlinks=False)
            continue
        has_entries, own, path = True, (*parts, item.name), Path(item.path)
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            yield _Entry(own, path, "closed")
            continue
        # numbers tell which of two files of one time is newer: of a copy, or Canvas's own
        order = (status.st_mtime_ns, [int(n) for n in re.findall(r"\d{1,18}", item.name)], own)
        if item.name.startswith("."):
            yield _Entry(own, path, "hidden")
        elif not stat.S_ISDIR(status.st_mode):
            yield _Entry(own, path, _kind_of_file(item.name, status.st_mode), order)
        elif len(own) < MAX_DEPTH:
            yield from _walk(root, own)
        else:
            yield _Entry(own, path, "too_deep")
    if parts and not has_entries:
        yield _Entry(parts, root.joinpath(*parts), "empty_folder")


def _kind_of_file(name: str, mode: int) -> str:
    if not stat.S_ISREG(mode):
        return "link" if stat.S_ISLNK(mode) else "special"
    if name.casefold().endswith((".ipynb", ".ipynb.txt", ".ipynb.json")):  # browsers add endings
        return "notebook"
    return "archive" if name.casefold().endswith(_ARCHIVES) else "other_file"


# --- whose it is ---------------------------------------------------------------------------------


class _Layout:
    """The layout of a folder, and whose an entry is.

    What a platform names counts only where it puts names: inside a folder of his own a student
    could choose somebody else's.
    """

    def __init__(self, entries: list[_Entry], folder: str):
        self.folder = folder
        paths = [entry.parts for entry in entries if entry.kind != "hidden"]
        folders = {parts[0] for parts in paths if len(parts) > 1}
        # the top folders are assignments if all have names of the course's notebooks
        are_stems = [bool(stem_of(top)) and not _strip_notebook(top) for top in folders]
        self.skip = bool(are_stems) and all(are_stems)
        names = [entry.name for entry in entries if entry.kind == "notebook"]
        num_canvas = sum(CANVAS_STRICT.fullmatch(name) is not None for name in names)
        self.is_canvas = num_canvas > 0 and 2 * num_canvas >= len(names)
        # Moodle's names stand at the top, or below several downloads side by side, where all must
        # be Moodle's; -1: nowhere
        tops = [MOODLE.fullmatch(top) is not None for top in {parts[0] for parts in paths}]
        below = [MOODLE.fullmatch(parts[1]) is not None for parts in paths if len(parts) > 1]
        at_top = 2 * sum(tops) >= len(tops)
        self.moodle = 0 if any(tops) and at_top else 1 if not any(tops) and all(below) else -1

    def find_owner(self, entry: _Entry) -> _Owner | None:
        """Find the student of an entry; None if its name does not tell."""
        is_below = self.skip and len(entry.parts) > 1
        parts, parent = (entry.parts[1:], entry.parts[:1]) if is_below else (entry.parts, ())
        if owner := self._find_moodle_owner(entry.parts):
            return owner
        if self.is_canvas and not parts[1:] and (owner := _find_canvas_owner(entry.name)):
            return owner
        if len(parts) > 1 or entry.kind in ("empty_folder", "too_deep", "closed"):
            name = clean_name(parts[0])
            return _Owner(("folder", name), name, mark=parts[0], folder=parent)
        is_work = entry.kind != "other_file" or entry.name.casefold().endswith(_WORK_ENDINGS)
        if entry.kind in ("empty_folder", "hidden") or not is_work:
            return None
        # if the file is named like a notebook of the course, the folder's name is the student's
        own = _strip_notebook(_strip_endings(clean_name(entry.name)))
        name = clean_name(own or self.folder)
        return _Owner(("file", name), name)

    def _find_moodle_owner(self, parts: tuple[str, ...]) -> _Owner | None:
        match = MOODLE.fullmatch("/".join(parts[self.moodle :])) if self.moodle >= 0 else None
        if not match:
            return None
        name, number = clean_name(match["name"]), match["id"] or ""
        identity = {"name": name} | ({"moodle_id": number} if number else {})
        return _Owner(("moodle", name), name, identity, mark=number, folder=parts[: self.moodle])


def _find_canvas_owner(name: str) -> _Owner | None:
    match = CANVAS.fullmatch(name)
    if not match:
        return None
    number = match["id"] or f"anon_{match['anon']}"
    label = clean_name(match["name"] or number)
    identity = {"canvas_id": number} | ({"name": label} if match["name"] else {})
    return _Owner(("canvas", number), label, identity, bool(match["late"] or match["late2"]))


def _group_by_student(owned: _Owned) -> list[Submission]:
    """Make a submission of the entries of each student, sorted by name.

    Moodle gives a student another number in each assignment, and a Mac writes a name in another
    way. One name with two marks is therefore one student, unless both marks are in one folder. Then
    the number, or the layout, becomes a part of the name. Two folders of one name stay namesakes,
    which ``batch`` leaves to a person.
    """
    marks: dict[tuple, set[tuple]] = defaultdict(set)
    for _, owner in owned:
        marks[owner.key].add((owner.folder, owner.mark))
    namesakes = {k for k, own in marks.items() if len(own) > len({folder for folder, _ in own})}
    groups: dict[tuple, _Owned] = defaultdict(list)
    for entry, owner in owned:
        groups[owner.key, owner.mark if owner.key in namesakes else ""].append((entry, owner))
    rules = Counter((own[0][1].name, rule) for ((rule, _), _), own in groups.items())
    names = Counter(own[0][1].name for own in groups.values())
    submissions = []
    for ((rule, _), _), own in groups.items():
        submission = _build_submission(own, own[0][1])
        name, identity = submission.student, submission.identity
        mark = identity.get("moodle_id") or identity.get("canvas_id")
        mark = mark or (rule if rules[name, rule] == 1 else "")
        if names[name] > 1 and mark:
            submission = replace(submission, student=f"{name} ({mark})")
        submissions.append(submission)
    return sorted(submissions, key=lambda submission: submission.student)


# --- one student ---------------------------------------------------------------------------------


def _build_submission(owned: _Owned, owner: _Owner) -> Submission:
    """Make one student's submission."""
    entries = [entry for entry, _ in owned]
    notebooks = sorted((e for e in entries if e.kind == "notebook"), key=lambda e: e.order)
    usable = notebooks[-MAX_NOTEBOOKS:]
    flags = _list_flags(entries, usable, len(notebooks) - len(usable))
    if any(own.late for _, own in owned):
        flags.append(Flag("late", "Canvas calls it late"))
    identity = dict(owner.identity)
    for key, value in [item for _, own in owned for item in own.identity.items()]:
        known = identity.setdefault(key, value)
        if key == "moodle_id" and value not in known.split():  # keep one for each assignment
            identity[key] = f"{known} {value}"
    files = tuple(entry.path for entry in usable)
    place = "/".join((*owner.folder, owner.mark or "".join(entry.name for entry in entries[:1])))
    return Submission(owner.name, files, identity, tuple(flags), place)


def _list_flags(entries: list[_Entry], usable: list[_Entry], num_older: int) -> list[Flag]:
    """Say what is odd about the files of a student."""
    flags = []
    if num_older:
        message = f"{num_older} notebooks left out: more than {MAX_NOTEBOOKS} of one student"
        flags.append(Flag("too_many_files", message))
    claims = defaultdict(list)
    for entry in usable:
        claims[stem_of(entry.name) or _strip_endings(entry.name)].append(entry.label)
    for claim, names in claims.items():
        if len(names) > 1:
            words = f"{len(names)} files for {clean_name(claim)}, the newest wins"
            flags.append(Flag("two_files", f"{words}: {', '.join(names)}"))
    flags += [entry.flag for entry in entries if entry.kind not in ("notebook", "other_file")]
    if others := [entry.label for entry in entries if entry.kind == "other_file"]:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        words = f"no notebook, not looked at: {', '.join(others[:5])}{more}"
        flags.append(Flag("other_file", words))
    if not usable:
        flags.append(Flag("no_notebook", "nothing that was handed in is a notebook (.ipynb)"))
    return flags


# --- names ---------------------------------------------------------------------------------------


def stem_of(name: str) -> str:
    """Find the stem of the course's notebook that a file name contains; "" if there is none.

    Example:
        >>> stem_of("02_attention_anna (1).ipynb"), stem_of("anna_01_patches_more.ipynb")
        ('02_attention', '01_patches_more')
    """
    match = NOTEBOOK_IN_NAME.search(name)
    return _NOTEBOOKS[match[1].casefold()] + (match[2] or "").casefold() if match else ""


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
