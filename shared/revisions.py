"""The revisions of a program's tables: which release each belongs to, and why one cannot be taken back.

A database is brought up to date by the program that opens it. The way back is a command of the newer program, since
only that knows what it added.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# A module of this size holds one constant and its comment; whatever is longer is none of ours.
_MODULE_OCTETS: Final = 16 * 1024
_HEAD: Final = re.compile(r'^HEAD: Final = "(\d{4})"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stays:
    """Why a revision is never taken back, whatever the tables hold; and what to do instead."""

    code: str
    detail: str
    fix: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A version of the tables: the first release that reads and writes it, what that brought, and whether it stays."""

    number: str
    release: str
    brought: str
    stays: Stays | None = None


class DowngradeRefused(Exception):  # noqa: N818 - a refusal is what it is
    """Tables that cannot be taken back as asked, with nothing changed: `code`, what is wrong and what to do next."""

    def __init__(self, code: str, detail: str, fix: str) -> None:
        super().__init__(f"{code}: {detail}\n  {fix}")
        self.code, self.detail, self.fix = code, detail, fix


def way_back(found: str | None, to: str, revisions: Sequence[Revision], command: str) -> tuple[Revision, ...]:
    """Return the revisions to take back, the newest first; none where the tables are of revision `to` already.

    `found` is what the tables are of now, `command` what the newer program is told. Raises `DowngradeRefused`.
    """
    numbers = [revision.number for revision in revisions]
    if to not in numbers:
        raise DowngradeRefused(
            "unknown_revision", f"There is no revision {to!r}.", f"There are {', '.join(numbers)}: see --list."
        )
    if found is None:
        raise DowngradeRefused("no_tables", "There are no tables to take back.", "Mend the path in the configuration.")
    if found not in numbers:
        raise DowngradeRefused(
            "newer_program",
            f"The tables are of revision {found}, which this program does not know.",
            f"Give the command to the release that made them: {command}",
        )
    if found < to:
        raise DowngradeRefused(
            "already_older",
            f"The tables are of revision {found}, before {to}.",
            "Start the release that you want: it brings them to its own revision.",
        )
    steps = tuple(revision for revision in reversed(revisions) if to < revision.number <= found)
    # Before any step is tried: nobody should mend for one what the next refuses for good.
    for step in steps:
        if step.stays is not None:
            raise refusal_of(step)
    return steps


def refusal_of(revision: Revision) -> DowngradeRefused:
    """Return why a revision that stays is not taken back."""
    assert revision.stays is not None, "it has a reason"
    return DowngradeRefused(revision.stays.code, revision.stays.detail, revision.stays.fix)


def table_of(revisions: Iterable[Revision], found: str | None, installed: dict[str, list[str]]) -> list[str]:
    """Return the lines that show revisions, the newest first, with the one that was found marked.

    `installed` holds the releases on this machine by the revision that they work with.
    """
    lines = []
    for revision in sorted(revisions, key=lambda each: each.number, reverse=True):
        mark = "*" if revision.number == found else " "
        lines.append(f"{mark} {revision.number}  {revision.release}  {revision.brought}")
        lines += [f"          installed here: {place}" for place in installed.get(revision.number, ())]
    return lines


def installed_releases(module: Path) -> dict[str, list[str]]:
    """Return the releases that `deploy/install` left on this machine, by the revision that each works with.

    `module` is the file of this program that states its own; without such an installation there are none.
    """
    parts = module.absolute().resolve().parts
    try:
        at = len(parts) - 1 - parts[::-1].index("releases")
    except ValueError:
        return {}
    root, inside = Path(*parts[: at + 1]), parts[at + 2 :]
    match inside:
        case (house, "lib", _, *rest):
            # Another release may have another Python.
            places = sorted(root.glob("/".join(("*", house, "lib", "python3.*", *rest))))
        case _:
            places = []
    found: dict[str, list[str]] = {}
    for each in places:
        with each.open("rb") as file:
            stated = _HEAD.search(file.read(_MODULE_OCTETS).decode("utf-8", "replace"))
        if stated is not None:
            found.setdefault(stated[1], []).append(str(root / each.relative_to(root).parts[0]))
    return found
