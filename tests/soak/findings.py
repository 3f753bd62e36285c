"""What has to be true at the end of a day: every message is somewhere, once, where it was decided to be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.end_to_end.houses import Houses
    from tests.servers.dovecot import Dovecot
    from tests.soak.day import Case, Day

_PLACE_OF: Final = {"processed": "Processed", "escalate": "Escalate"}
# Connections of one login: those that sync, listen and fetch, and of the executor those that look and move.
_MOST_SESSIONS: Final = 8


def look_at_everything(dovecot: Dovecot, houses: Houses, day: Day) -> Iterator[str]:
    """Yield whatever is wrong with mail, proposals, journal, read log and connections."""
    yield from _mail(dovecot, day)
    yield from _proposals(houses, dovecot, day)
    for login in ("reader", "executor"):
        if (count := len(dovecot.session_pids(login))) > _MOST_SESSIONS:
            yield f"{count} connections of {login}"
    found = day.numbers("reader")
    if found['mailwarrant_messages_set_aside{account="shop"}']:
        yield "messages were set aside"
    yield from (f"{name} is {value:.0f}" for name, value in found.items() if name.startswith("mailwarrant_refused"))
    for house, command in ((houses.executor, ("audit", "verify")), (houses.reader, ("reads", "verify"))):
        done = house.run(*command)
        if done.returncode != 0:
            yield f"{' '.join(command)}: {done.stdout}{done.stderr}"
    for house in (houses.executor, houses.reader):
        if "Traceback" in house.log:
            yield f"{house.module} had a traceback: {house.log.partition('Traceback')[2][:1500]}"
        if (status := house.stop()) != 0:
            yield f"{house.module} ended with {status}"


def _mail(dovecot: Dovecot, day: Day) -> Iterator[str]:
    lying = Counter(
        message.sha256 for mailbox in dovecot.snapshot().mailboxes.values() for message in mailbox.messages.values()
    )
    if lost := [digest for digest in day.delivered if not lying[digest]]:
        yield f"{len(lost)} messages are lost"
    if twice := [digest for digest, count in lying.items() if count > 1]:
        yield f"{len(twice)} messages lie in two places"
    if foreign := [digest for digest in lying if digest not in day.delivered]:
        yield f"{len(foreign)} messages are not what was delivered"


def _proposals(houses: Houses, dovecot: Dovecot, day: Day) -> Iterator[str]:
    place_of = {
        message.sha256: name
        for name, mailbox in dovecot.snapshot().mailboxes.items()
        for message in mailbox.messages.values()
    }
    proposed = set()
    for case in day.cases:
        proposed.add(case.sha256)
        state = houses.proposal(case.id)["state"]
        expected, place = _expected(case)
        if state != expected or place_of.get(case.sha256) != place:
            yield f"{case.id}: decided {case.decision}, it is {state} and lies in {place_of.get(case.sha256)}"
    for digest, place in day.delivered.items():
        if digest not in proposed and place_of.get(digest) != place:
            yield f"a message that nobody proposed lies in {place_of.get(digest)}"


def _expected(case: Case) -> tuple[str, str]:
    match case.decision:
        case "approve":
            return "applied", _PLACE_OF[case.to]
        case "undo":
            return "undone", "Incoming"
        case "reject":
            return "rejected", "Incoming"
        case "withdraw":
            return "withdrawn", "Incoming"
        case _:
            return "pending", "Incoming"
