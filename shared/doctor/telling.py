"""How a doctor is run and how it answers: parts, users, text or JSON, the exit status."""

import os
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import typer

from shared.doctor.finding import Fault, Finding, Looking, Report
from shared.doctor.users import User, tried_as, user_named, user_of


class Part(StrEnum):
    """What to look at: the machine's files, users and units, or what the program alone can reach, or both."""

    ALL = "all"
    MACHINE = "machine"
    PROGRAM = "program"


def house_user(named: str | None, usual: str) -> User | None:
    """Return the user that the program runs as: the one that was named, the usual one where root asks, or who asks."""
    if named is not None:
        return user_named(named)
    usual_user = user_named(usual)
    if os.geteuid() == 0 and usual_user is not None:
        return usual_user
    return user_of(os.geteuid())


def look(part: Part, owner: User | None, machine: Callable[[], Report], program: Callable[[], Report]) -> Report:
    """Look at the parts that were asked for; what the program reaches is looked at as its own user."""
    looking = Looking()
    if part is not Part.PROGRAM:
        looking.add(machine())
    if part is not Part.MACHINE:
        looking.add(_as_owner(owner, program))
    return looking.report()


def tell(report: Report, program: str, *, as_json: bool) -> None:
    """Print a report and end with its status."""
    if as_json:
        typer.echo(report.json(program))
    else:
        for line in report.lines(program):
            typer.echo("".join(each if each.isprintable() else "?" for each in line))
    raise typer.Exit(report.status)


def _as_owner(owner: User | None, program: Callable[[], Report]) -> Report:
    if owner is None or os.geteuid() != 0 or owner.uid == 0:
        return program()
    # A mail server's answers, and files that a mistaken root would make: neither is for root.
    return _report_of(tried_as(owner, lambda: _packed(program())))


def _packed(report: Report) -> dict[str, Any]:
    return {
        "findings": [(each.fault.value, each.what, each.fix) for each in report.findings],
        "unseen": report.unseen,
        "notes": report.notes,
    }


def _report_of(packed: dict[str, Any]) -> Report:
    found = tuple(Finding(Fault(fault), what, fix) for fault, what, fix in packed["findings"])
    return Report(found, tuple(packed["unseen"]), tuple(packed["notes"]))
