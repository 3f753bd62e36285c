"""Which messages lie in several mailboxes, where the server tells (Gmail's X-GM-MSGID, RFC 8474's EMAILID).

Kept in this process only: it spares fetches, and nothing depends on it.
"""

from collections.abc import Iterable, Mapping

from agent_reader.imap.values import Stated

Place = tuple[str, int]


class Sameness:
    """By what the server calls them, one place (mailbox id, UID) of each message that the mirror holds."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._learned: set[str] = set()

    def note(self, mailbox_id: str, stated: Mapping[int, Stated]) -> None:
        """These were taken in."""
        for uid, each in stated.items():
            if each.same_as is not None:
                self._places[each.same_as] = (mailbox_id, uid)

    def elsewhere(self, mailbox_id: str, stated: Mapping[int, Stated]) -> dict[int, Place]:
        """Return where the mirror has the same messages, by the UIDs that they have here."""
        places = {uid: self._places.get(each.same_as) for uid, each in stated.items() if each.same_as is not None}
        return {uid: place for uid, place in places.items() if place is not None and place != (mailbox_id, uid)}

    def unlearned(self, mailbox_ids: Iterable[str]) -> list[str]:
        """Return the mailboxes whose held messages were not noted in this process, and take them as learned."""
        unlearned = [mailbox_id for mailbox_id in mailbox_ids if mailbox_id not in self._learned]
        self._learned.update(unlearned)
        return unlearned
