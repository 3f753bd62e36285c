"""Which messages lie in several mailboxes, where the server tells (Gmail's X-GM-MSGID, RFC 8474's EMAILID).

Kept in this process only: it spares fetches, and nothing depends on it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from agent_reader.imap.values import Stated

Place = tuple[str, int]

# Some 20 MB. Of a larger account the messages that were noted first are fetched again where they lie elsewhere too:
# the mailboxes come in together, each the newest first, so what is the same is mostly noted soon before.
_MOST_PLACES: Final = 100_000


class Sameness:
    """By what the server calls them, one place (mailbox id, UID) of each message that the mirror holds."""

    def __init__(self, most_places: int = _MOST_PLACES) -> None:
        self._most_places = most_places
        self._places: dict[str, Place] = {}
        self._learned: set[str] = set()

    def note(self, mailbox_id: str, stated: Mapping[int, Stated]) -> None:
        """These were taken in."""
        for uid, each in stated.items():
            if each.same_as is not None:
                self._places[each.same_as] = (mailbox_id, uid)
        while len(self._places) > self._most_places:
            del self._places[next(iter(self._places))]

    def elsewhere(self, mailbox_id: str, stated: Mapping[int, Stated]) -> dict[int, Place]:
        """Return where the mirror has the same messages, by the UIDs that they have here."""
        places = {uid: self._places.get(each.same_as) for uid, each in stated.items() if each.same_as is not None}
        return {uid: place for uid, place in places.items() if place is not None and place != (mailbox_id, uid)}

    def unlearned(self, mailbox_ids: Iterable[str]) -> list[str]:
        """Return the mailboxes whose held messages were not noted in this process, and take them as learned."""
        unlearned = [mailbox_id for mailbox_id in mailbox_ids if mailbox_id not in self._learned]
        self._learned.update(unlearned)
        return unlearned
