"""Known mistakes as TOML: words and edits that a teacher can read, mend and translate.

Role: ``read_words`` and ``read_values`` read the file beside a checker. A file that is missing or
wrong is a ``WordsError``, which names file, place and remedy, whoever reads it. ``families.toml``
has the words of mistakes that several exercises share, and banks that several exercises take whole.
``errors.toml`` explains errors that everybody meets (``common_errors``), and ``reports.toml`` has
what is said of any exercise. Not here: whether an edit fits the reference (``mistakes``), and an
example (``kit``).

``family = "percent"`` takes the words of a family; what is written beside it wins. ``bank =
"modes"`` alone stands for all mistakes of a shared bank. ``[idea]`` and ``[polish]`` say what it
shows that a part passed.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from vitedu.checks.writing.mistakes import COMMON_NAMES, Edits, Mistake
from vitedu.ground.words import WordsError, check_table, place, read

FAMILIES = Path(__file__).with_name("families.toml")
ERRORS = Path(__file__).with_name("errors.toml")
REPORTS = Path(__file__).with_name("reports.toml")
WORDS: dict[str, type] = dict.fromkeys(("id", "name", "expected", "why", "try"), str)
EXTRA: dict[str, type] = {"part": str, "edits": list, "also": list}
ERROR_WORDS = {"id": str, "message": str, "why": str, "try": str}
ERROR_EXTRA: dict[str, type] = {"kind": str, "line": str, "printed": bool, "headline": str}
PARTS = ("accepts", "idea", "polish", "shown")
VALUE_WORDS = dict.fromkeys(("id", "value", "name", "why", "try"), str)


def words_path(module: ModuleType) -> Path:
    """Give the path of the words that belong to a checker's module."""
    return Path(str(module.__file__)).with_suffix(".toml")


def read_words(module: ModuleType) -> dict[str, Any]:
    """Read the file beside a checker: the fields ``bank``, ``idea`` and ``polish``."""
    path = words_path(module)
    where, table = place(path), read(path)
    mistakes = _read_entries(where, _entries(where, table, "mistake"))
    check_unique(where, mistakes)
    fields: dict[str, Any] = {"bank": tuple(mistakes)}
    for kind in ("idea", "polish"):
        words = table.get(kind, {})
        fields[kind] = check_table(f"{where}, {kind}", words, {}, dict.fromkeys(words, str))
    return fields


def _read_entries(where: str, entries: list[dict]) -> list[Mistake]:
    mistakes: list[Mistake] = []
    for entry in entries:
        at = f"{where}, {_title(entry)}"
        if "bank" in entry:
            mistakes += shared_bank(check_table(at, entry, {"bank": str}, {})["bank"], at)
            continue
        if "family" in entry:
            own = {key: value for key, value in entry.items() if key != "family"}
            entry = _look_up("family", entry["family"], at) | own
        mistakes.append(_make_mistake(at, entry))
    return mistakes


def family(name: str) -> Mistake:
    """Return the mistake of a family, without edits of its own."""
    return _make_mistake(f"families.toml, {name}", _look_up("family", name))


def _look_up(kind: str, name: str, where: str = "families.toml") -> Any:
    """Return what families.toml has under a kind and a name."""
    entries = read_families()[kind]
    if name not in entries:
        names = ", ".join(entries)
        raise WordsError(f'{where}: there is no {kind} "{name}"; families.toml has {names}.')
    return entries[name]


def shared_bank(name: str, where: str = "families.toml") -> list[Mistake]:
    """Return the mistakes of a bank that several exercises share."""
    return _read_entries("families.toml", _look_up("bank", name, where))


@cache
def read_errors() -> list[dict]:
    """Read the errors that everybody meets; "message" becomes a compiled expression."""
    where, table = place(ERRORS), read(ERRORS)
    check_table(where, table, {"error": list}, {})
    errors = []
    for entry in _entries(where, table, "error"):
        at = f"{where}, error {entry.get('id', '?')}"
        error = check_table(at, entry, ERROR_WORDS, ERROR_EXTRA)
        try:
            error["message"] = pattern = re.compile(error["message"])
            for key in ("headline", "why", "try"):
                error.get(key, "").format(*range(pattern.groups), near="", attribute="", menu="")
        except (re.error, ValueError, LookupError) as trouble:
            remedy = "correct the expression, or what stands in braces"
            raise WordsError(f"{at}: {type(trouble).__name__}: {trouble}; {remedy}.") from None
        errors.append(error)
    check_unique(where, errors)
    return errors


@cache
def read_reports() -> dict[str, dict[str, str]]:
    """Read what is said of any exercise: of parts that hold, and of stages that fail."""
    return check_table(place(REPORTS), read(REPORTS), {"part": dict, "headline": dict}, {})


@cache
def read_families() -> dict:
    table = read(FAMILIES)
    return check_table("families.toml", table, {"family": dict, "bank": dict}, {})


def _make_mistake(where: str, entry: Any) -> Mistake:
    """Check the words of a mistake."""
    words = check_table(where, entry, WORDS, EXTRA)
    words["next_step"] = words.pop("try")
    words["edits"] = _read_edits(where, words.get("edits", []))
    words["also"] = tuple(_read_edits(where, edits) for edits in words.get("also", []))
    return Mistake(**words)


def _read_edits(where: str, pairs: list) -> Edits:
    if not all(isinstance(pair, list) and list(map(type, pair)) == [str, str] for pair in pairs):
        raise WordsError(f'{where}: an edit is a pair ["old text", "new text"] (got {pairs!r}).')
    if len(dict(pairs)) < len(pairs):
        raise WordsError(f"{where}: two edits change the same text; join them into one.")
    return dict(pairs)


def _entries(where: str, table: Mapping, key: str) -> list[dict]:
    """Return the entries of the one list that a file or a group of banks has under ``key``."""
    entries = table.get(key)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise WordsError(f"{where}: has no [[{key}]]; write one for each known mistake.")
    if key == "mistake" and len(table) > 1:
        check_table(where, table, {key: list}, dict.fromkeys(PARTS, dict))
    return entries


def _title(entry: Mapping) -> str:
    return f"mistake {entry.get('id', entry.get('family', entry.get('bank', '?')))}"


def check_unique(where: str, entries: Sequence[Any]) -> None:
    ids = [entry["id"] if isinstance(entry, dict) else entry.id for entry in entries]
    if twice := [id_ for id_ in ids if ids.count(id_) > 1]:
        raise WordsError(f'{where}: two mistakes have the id "{twice[0]}"; rename one.')


# --- values ---------------------------------------------------------------------------------------


def read_values(module: ModuleType, chapter: ModuleType) -> dict[str, dict[str, Any]]:
    """Read what a chapter says of its values: exercise -> fields of its ``ValueChecker``.

    ``[idea]`` says of each exercise what the right value shows, ``[rtol]`` and ``[atol]`` how near
    is right. ``value`` of a mistake is an expression of Python: it finds the names of the chapter's
    module, those of the module of its checkers, and ``math``. ``matches`` is one of ``value``, and
    recognises more answers than this one.
    """
    path = words_path(module)
    where, table = place(path), read(path)
    ideas = table.get("idea", {})
    numbers = {"rtol": dict, "atol": dict}
    check_table(where, table, {"idea": dict} | dict.fromkeys(ideas, list), numbers)
    check_table(f"{where}, idea", ideas, {}, dict.fromkeys(ideas, str))
    names = COMMON_NAMES | vars(chapter) | vars(module)
    values = {}
    for exercise, idea in ideas.items():
        mistakes = []
        for entry in _entries(where, table, exercise):
            at = f"{where}, {exercise}, {_title(entry)}"
            words = check_table(at, entry, VALUE_WORDS, {"matches": str, "rtol": float})
            words |= {"value": _compute(at, words["value"], names), "expected": ""}
            if matches := words.pop("matches", ""):
                words["recognises"] = _compute(at, f"lambda value: {matches}", names)
            mistakes.append(Mistake(next_step=words.pop("try"), **words))
        check_unique(f"{where}, {exercise}", mistakes)
        near = {name: table[name][exercise] for name in numbers if exercise in table.get(name, {})}
        values[exercise] = {"bank": tuple(mistakes), "proves": idea, **near}
    return values


def _compute(where: str, expression: str, names: Mapping[str, Any]) -> Any:
    """Compute an expression of a file of words."""
    try:
        return eval(expression, dict(names))
    except Exception as error:
        message = f"{expression} cannot be computed ({type(error).__name__}: {error})"
        raise WordsError(f"{where}: {message}; correct it.") from None
