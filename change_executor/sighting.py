"""Where the message of an intent lies now: looked for by UID and digest in the mailboxes that the intent names.

Never a search for a text, and never "gone" from a failure to look.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from change_executor.errors import MailboxRefused
from change_executor.journal.moves import CopyStep, Intent, MoveKind
from change_executor.lifecycle import Event
from change_executor.looking import MailboxStatus, OpenedMailbox, SeenMessage
from change_executor.outcomes import Waiting

# A destination gets a few messages between a doubt and its reconcile. Past this a person looks faster than we do.
MAX_CANDIDATES: Final = 500


class LookSession(Protocol):
    """What looking for a message needs; `change_executor.looking.Looking` is the one that there is."""

    def examine(self, mailbox: str) -> OpenedMailbox: ...  # noqa: D102 - see looking
    def status(self, mailbox: str) -> MailboxStatus: ...  # noqa: D102 - see looking
    def fetch(self, uid: int) -> SeenMessage | None: ...  # noqa: D102 - see looking
    def uids_from(self, uid: int) -> list[int]: ...  # noqa: D102 - see looking


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where the message of an intent was seen: at its old UID or not, at which new UIDs of the target, and elsewhere.

    `elsewhere` is looked for only where it was found in the target: then somebody else moved it at the same moment.
    """

    in_source: bool
    hits: tuple[int, ...]
    elsewhere: bool = False


def conclude(
    kind: MoveKind, sighting: Sighting, *, quiet_time_over: bool, step: CopyStep | None = None
) -> Event | None:
    """Return the event that a sighting proves, or None where it proves nothing yet.

    Found only where it lay means that the command did not run, or not yet: a server process that was stopped can run
    it later, so this counts after the quiet time. In both, or more than once: a person settles it. Of an undo that
    is found nowhere a person settles it too, and so of a copy that was made (`step`) and is gone again.
    """
    if sighting.elsewhere:
        return None
    match (sighting.in_source, len(sighting.hits)):
        case (False, 1):
            return Event.FOUND_IN_TARGET if kind is MoveKind.MOVE else Event.FOUND_IN_SOURCE
        case (True, 0) if quiet_time_over and step is None:
            return Event.FOUND_IN_SOURCE if kind is MoveKind.MOVE else Event.FOUND_IN_TARGET
        case (False, 0) if kind is MoveKind.MOVE:
            return Event.FOUND_IN_NEITHER
        case _:
            return None


def look(session: LookSession, intent: Intent) -> Sighting | Waiting:
    """Look for the message of an intent, or return why looking tells nothing."""
    # The source first: a command that runs between the two looks then shows the message twice, and never nowhere.
    if not _is_as_it_was(session.examine(intent.source_mailbox), intent.source_uidvalidity, intent.source_uid + 1):
        return Waiting.MAILBOX_CHANGED
    in_source = _is_it(session.fetch(intent.source_uid), intent)
    opened = session.examine(intent.target_mailbox)
    if not _is_as_it_was(opened, intent.target_uidvalidity, intent.target_uidnext):
        return Waiting.MAILBOX_CHANGED
    listed = session.uids_from(intent.target_uidnext)
    if len(listed) > MAX_CANDIDATES:
        return Waiting.TOO_MANY_TO_LOOK_AT
    hits = _those_of(session, intent, listed)
    if not hits:
        # SEARCH was seen to leave out what had just come, and then the message would count as gone, or as not moved.
        unlisted = _unlisted(session, intent, opened.uidnext, listed)
        if len(unlisted) > MAX_CANDIDATES:
            return Waiting.TOO_MANY_TO_LOOK_AT
        hits = _those_of(session, intent, unlisted)
    return Sighting(in_source, hits, bool(hits) and lies_elsewhere(session, intent))


def _those_of(session: LookSession, intent: Intent, uids: Iterable[int]) -> tuple[int, ...]:
    return tuple(uid for uid in uids if _is_it(session.fetch(uid), intent))


def _unlisted(session: LookSession, intent: Intent, uidnext: int | None, listed: list[int]) -> list[int]:
    """UIDs that were given since the intent, and that nobody listed: expunged since, or left out."""
    # Courier tells it by STATUS alone. No room is made for more than are looked at.
    end = min(uidnext or session.status(intent.target_mailbox).uidnext, intent.target_uidnext + 2 * MAX_CANDIDATES + 1)
    return sorted(set(range(intent.target_uidnext, end)) - set(listed))


def _is_as_it_was(opened: OpenedMailbox, uidvalidity: int, uidnext: int) -> bool:
    # RFC 9051 §2.3.1.1: UIDs only grow. Where they have not, what is new has a UID that is not looked at.
    return opened.uidvalidity == uidvalidity and (not opened.uidnext or opened.uidnext >= uidnext)


def lies_elsewhere(session: LookSession, intent: Intent) -> bool:
    """Whether the message came into a destination that it has no business in, since the intent was written."""
    return any(
        _came_into(session, intent, mailbox, uidvalidity, uidnext)
        for mailbox, (uidvalidity, uidnext) in sorted(intent.elsewhere.items())
    )


def _came_into(session: LookSession, intent: Intent, mailbox: str, uidvalidity: int, uidnext: int) -> bool:
    # A destination that this message has no business in must not hold it up.
    with suppress(MailboxRefused):
        if session.status(mailbox).uidnext == uidnext or session.examine(mailbox).uidvalidity != uidvalidity:
            return False
        return any(_is_it(session.fetch(uid), intent) for uid in session.uids_from(uidnext)[:MAX_CANDIDATES])
    return False


def _is_it(message: SeenMessage | None, intent: Intent) -> bool:
    return message is not None and message.sha256 == intent.octets_sha256
