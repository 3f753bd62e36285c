"""The open mailbox of a signed-in connection: UIDs, flags and octets, and no way to change any of them.

One thread uses it (`interrupt` apart). Each answer NO or BAD is `Refused` and the connection lives; anything else that
goes wrong finishes it: `ImapFailure`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from agent_reader.errors import Refused
from agent_reader.imap import answers
from agent_reader.imap.connection import Connection
from agent_reader.imap.values import Examined, FetchedMessage, MessageState, Stated, ThreadHeader
from shared.identity import MAX_MESSAGE_OCTETS
from shared.reader_verbs import THREAD_FIELDS

# Dovecot refuses an argument over 64 KiB and the guard a line over 60 KiB; a set of UIDs stays well below.
_MOST_SET_OCTETS: Final = 40_000
# imaplib ends the connection at a line over 1,000,000 octets; this many UIDs of ten digits fill 550,000.
_MOST_UIDS_A_LINE: Final = 50_000
# No mailbox has so many messages; an answer that says so would fill the memory.
_MOST_UIDS: Final = 20_000_000
# Flags of so many messages are asked for at a time: one answer of some 2 MB.
_STATES_AT_A_TIME: Final = 50_000
# A large message comes in pieces, so that one read never holds more than this and a lost line costs little.
_PIECE_OCTETS: Final = 1024 * 1024
# Of a message too large to be read whole, only the header is kept; a header is never this large honestly.
_MOST_HEADER_OCTETS: Final = 1024 * 1024


class ReadOnlySession(Connection):
    """A connection that looks into mailboxes."""

    def uids(self, examined: Examined) -> list[int]:
        """Return every UID of the open mailbox, ascending. A server may leave some out: see `states_of`."""
        if examined.exists == 0:
            return []
        if self.can("ESEARCH"):
            self._ask("UID SEARCH", "RETURN (ALL)", "ALL")
            with self._reading():
                found = answers.esearch_uids(self._untagged("ESEARCH"))
                if found is not None:
                    return found.spread(_MOST_UIDS)
            return sorted(set(answers.search_uids(self._untagged("SEARCH"))))
        if examined.exists <= _MOST_UIDS_A_LINE:
            self._ask("UID SEARCH", "ALL")
            return sorted(set(answers.search_uids(self._untagged("SEARCH"))))
        windows = (
            self._uids_between(low, low + _MOST_UIDS_A_LINE - 1)
            for low in range(1, examined.uidnext, _MOST_UIDS_A_LINE)
        )
        return sorted({uid for window in windows for uid in window})

    def all_states(self, examined: Examined, known: Collection[int] = ()) -> dict[int, MessageState]:
        """Return flags of every message of the open mailbox by UID, in as many answers as `known` UIDs make sensible.

        Raises `Refused` where fewer answer than EXAMINE counted and none was expunged meanwhile.
        """
        found: dict[int, MessageState] = {}
        expunged = False
        for uid_range in _windows(known) if examined.exists else ():
            found |= self._states(uid_range, "")
            expunged = expunged or not {"EXPUNGE", "VANISHED"}.isdisjoint(self._imap.untagged_responses)
        if len(found) < examined.exists and not expunged:
            raise Refused("UID FETCH", "OK", f"{len(found)} messages answered of {examined.exists}")
        return found

    def changed_since(self, modseq: int, known: Collection[int] = ()) -> dict[int, MessageState]:
        """Return flags of the messages that changed after this MODSEQ (RFC 7162 §3.1.4)."""
        found: dict[int, MessageState] = {}
        for uid_range in _windows(known):
            found |= self._states(uid_range, f"(CHANGEDSINCE {modseq})")
        return found

    def states_of(self, uids: Collection[int]) -> dict[int, MessageState]:
        """Return flags of these messages; those that are gone do not answer."""
        wanted, found = set(uids), dict[int, MessageState]()
        for uid_set in answers.uid_sets(wanted, _MOST_SET_OCTETS):
            found |= self._states(uid_set, "")
        return {uid: state for uid, state in found.items() if uid in wanted}

    @property
    def tells_sameness(self) -> bool:
        """Whether the server tells which messages of several mailboxes are the same."""
        return self.can("X-GM-EXT-1") or self.can("OBJECTID")

    def stated(self, uids: Sequence[int]) -> dict[int, Stated]:
        """Return what the server states of these messages: size, date, and which of them are the same elsewhere."""
        found: dict[int, Stated] = {}
        same = "X-GM-MSGID" if self.can("X-GM-EXT-1") else "EMAILID" if self.can("OBJECTID") else ""
        items = f"(RFC822.SIZE INTERNALDATE{' ' + same if same else ''})"
        for uid_set in answers.uid_sets(uids, _MOST_SET_OCTETS):
            for uid, fetched in self._fetch(uid_set, items).items():
                size = fetched.get(b"RFC822.SIZE")
                found[uid] = Stated(
                    size if isinstance(size, int) else None,
                    answers.internaldate_of(fetched),
                    answers.identity_of(fetched.get(same.encode())) if same else None,
                )
        return {uid: found[uid] for uid in uids if uid in found}

    def fetch_messages(self, uids: Sequence[int]) -> dict[int, FetchedMessage]:
        """Fetch whole messages in one command; what the server does not give whole is left out."""
        wanted, messages = set(uids), dict[int, FetchedMessage]()
        for uid_set in answers.uid_sets(uids, _MOST_SET_OCTETS):
            for uid, items in self._fetch(uid_set, f"({self._about()} BODY.PEEK[])").items():
                octets = items.get(b"BODY[]")
                if uid in wanted and isinstance(octets, bytes) and (message := _message(uid, items, octets)):
                    messages[uid] = message
        return messages

    def pieces(self, uid: int) -> Iterator[bytes]:
        """Yield the octets of one message of the open mailbox, at most 1 MiB at a time; nothing where it is gone.

        RFC 9051 §6.4.5 partial. Raises `Refused`, `ImapFailure`.
        """
        offset = 0
        while piece := self._piece(uid, "", offset):
            yield piece
            if len(piece) < _PIECE_OCTETS:
                return
            offset += len(piece)

    def fetch_large(self, uid: int) -> FetchedMessage | None:
        """Fetch one message in pieces; past `MAX_MESSAGE_OCTETS`, whatever size was stated, its header only."""
        octets = self._in_pieces(uid, "", MAX_MESSAGE_OCTETS)
        if octets is not None and len(octets) > MAX_MESSAGE_OCTETS:
            return self.fetch_header(uid)
        items = self._fetch(str(uid), f"({self._about()})").get(uid)
        return _message(uid, items, octets) if items is not None and octets is not None else None

    def fetch_header(self, uid: int) -> FetchedMessage | None:
        """Fetch the header of one message; for those too large to be read whole."""
        header = self._in_pieces(uid, "HEADER", _MOST_HEADER_OCTETS)
        items = self._fetch(str(uid), f"({self._about()})").get(uid)
        if items is None or header is None:
            return None
        return _message(uid, items, None, header[:_MOST_HEADER_OCTETS])

    def thread_headers(self, uids: Sequence[int]) -> list[ThreadHeader]:
        """Fetch what threads these messages of the open mailbox; one that the server gives no date of is left out."""
        found: list[ThreadHeader] = []
        for uid_set in answers.uid_sets(uids, _MOST_SET_OCTETS):
            for uid, items in self._fetch(uid_set, f"(INTERNALDATE {THREAD_FIELDS})").items():
                internaldate = answers.internaldate_of(items)
                # RFC 9051 §7.5.2: the server writes the fields' names anew, some in another way.
                header = next((value for item, value in items.items() if item.startswith(b"BODY[HEADER.FIELDS")), None)
                if internaldate is not None:
                    found.append(ThreadHeader(uid, internaldate, header if isinstance(header, bytes) else b""))
        return found

    def _uids_between(self, low: int, high: int) -> list[int]:
        self._ask("UID SEARCH", "UID", f"{low}:{high}")
        return answers.search_uids(self._untagged("SEARCH"))

    def _states(self, uid_set: str, changed_since: str) -> dict[int, MessageState]:
        items = "(FLAGS MODSEQ)" if self._condstore else "(FLAGS)"
        self._ask("UID FETCH", uid_set, items, *((changed_since,) if changed_since else ()))
        with self._reading():
            return answers.states(self._untagged("FETCH"))

    def _fetch(self, uid_set: str, items: str) -> dict[int, dict[bytes, Any]]:
        self._ask("UID FETCH", uid_set, items)
        with self._reading():
            return answers.fetched(self._untagged("FETCH"))

    def _about(self) -> str:
        return "FLAGS INTERNALDATE RFC822.SIZE" + (" MODSEQ" if self._condstore else "")

    def _in_pieces(self, uid: int, section: str, most: int) -> bytes | None:
        """Everything, or the first octets past `most`, or None where the server does not answer with it."""
        octets = bytearray()
        while len(octets) <= most:
            piece = self._piece(uid, section, len(octets))
            if piece is None:
                return bytes(octets) if octets else None
            octets += piece
            if len(piece) < _PIECE_OCTETS:
                break
        return bytes(octets)

    def _piece(self, uid: int, section: str, offset: int) -> bytes | None:
        items = self._fetch(str(uid), f"(BODY.PEEK[{section}]<{offset}.{_PIECE_OCTETS}>)").get(uid, {})
        piece = items.get(f"BODY[{section}]<{offset}>".encode())
        # RFC 9051 §6.4.5: past the end the string is empty; some servers say NIL.
        return piece if isinstance(piece, bytes) else None


def _message(
    uid: int, items: Mapping[bytes, Any], octets: bytes | None, header: bytes | None = None
) -> FetchedMessage | None:
    internaldate = answers.internaldate_of(items)
    if internaldate is None or b"FLAGS" not in items:
        return None
    stated = items.get(b"RFC822.SIZE")
    if octets is None:
        size = stated if isinstance(stated, int) else 0
        return FetchedMessage(uid, answers.state_of(items), internaldate, size, None, header or b"")
    # RFC822.SIZE is an estimate on some servers; the octets are not.
    return FetchedMessage(uid, answers.state_of(items), internaldate, len(octets), octets, _header_of(octets))


def _header_of(octets: bytes) -> bytes:
    ends = octets.find(b"\r\n\r\n")
    # No further than that: most mail has no line that ends otherwise, and all of it would be searched for one.
    ends_otherwise = octets.find(b"\n\n", 0, ends if ends >= 0 else len(octets))
    if ends_otherwise >= 0:
        return octets[: ends_otherwise + 2]
    return octets[: ends + 4] if ends >= 0 else octets


def _windows(known: Collection[int]) -> Iterator[str]:
    """Divide all UIDs into ranges with at most so many known messages each; what is new is in the last."""
    ends = sorted(known)[_STATES_AT_A_TIME - 1 :: _STATES_AT_A_TIME]
    for low, high in pairwise([0, *ends]):
        yield f"{low + 1}:{high}"
    yield f"{ends[-1] + 1 if ends else 1}:*"
