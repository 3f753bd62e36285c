"""The exact octets of a blob, from cache, store or mail server: proven by their digest, or not given."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, Protocol

from agent_reader.identity import canonical_digest
from agent_reader.imap.values import Place
from agent_reader.query.blob_cache import BlobCache, OpenBlob, Spool
from agent_reader.query.blobs import FoundBlob
from agent_reader.store.blobs import nested_parts
from agent_reader.store.reading_room import ReadingRoom
from shared.identity import (
    blob_id,
    is_unprovable_email_id,
    is_unstable_email_id,
    message_digest,
    unstable_email_id,
)
from shared.imap_login import ImapFailure
from shared.message import parse
from shared.message.limits import MAX_HEADER_OCTETS

# What is written at once of a part: a piece, not the whole again.
_PIECE_OCTETS: Final = 1024 * 1024


class Octets(Protocol):
    """What fetches a message of one account; see `agent_reader.imap.fetcher.Fetcher`."""

    def fetch(self, place: Place, write: Callable[[bytes], None], /) -> bool:
        """Give the octets at a place to `write`; False where there is no message. Raises `ImapFailure`."""


class Unavailable(StrEnum):
    """Why a blob that is known cannot be given."""

    GONE = "blob_gone"
    MAIL_SERVER = "mail_server_unavailable"
    TOO_LARGE = "blob_too_large"
    ALTERED = "octets_altered"
    NO_SPACE = "no_space"


class BlobUnavailable(Exception):  # noqa: N818 - names the state of things
    """A blob that is known and cannot be given now; `retryable` says whether it may be later."""

    def __init__(self, reason: Unavailable, detail: str, *, retryable: bool) -> None:
        super().__init__(f"{reason.value}: {detail}")
        self.reason, self.detail, self.retryable = reason, detail, retryable


class BlobReader:
    """Opens blobs; any thread may call. The same message is fetched once, however many ask for it at a time.

    `fetchers` by account id; above `largest_octets` a message is not fetched.
    """

    def __init__(self, fetchers: Mapping[str, Octets], cache: BlobCache, largest_octets: int) -> None:
        self._fetchers, self._cache, self._largest_octets = fetchers, cache, largest_octets
        self._turns = _Turns()
        # Not the store's: whoever reads there may wait here for a message.
        self._room = ReadingRoom()
        # Where other octets may wait that leave nothing behind.
        self.folder = cache.folder

    def open(self, account_id: str, found: FoundBlob) -> OpenBlob:
        """Return the octets of a blob. Its digest is in its id, and no other octets are given or kept.

        Raises `BlobUnavailable`. A message without a digest (an `X...` record) is what its one copy holds; one that is
        named by its header (`E...`) what a copy with that very header holds now.
        """
        cached = self._cache.get((account_id, found.blob_id))
        if cached is not None:
            return cached
        try:
            if found.kept is not None:
                return self._proven(account_id, found.blob_id, found.kept)
            # One at a time for each message: the second finds it in the cache.
            with self._turns.turn((account_id, found.message_blob_id)):
                return self._fetched(account_id, found)
        except OSError as error:
            raise BlobUnavailable(
                Unavailable.NO_SPACE, f"The reader's disk cannot take it ({error.strerror}).", retryable=True
            ) from error

    def _fetched(self, account_id: str, found: FoundBlob) -> OpenBlob:
        cached = self._cache.get((account_id, found.blob_id))
        if cached is not None:
            return cached
        message = self._cache.get((account_id, found.message_blob_id)) or self._fetch(account_id, found)
        if not found.is_part:
            return message
        with message, self._room.place(message.size):
            for part in nested_parts(parse(message.whole())):
                if part.blob_id == found.blob_id:
                    return self._proven(account_id, found.blob_id, part.content())
        # The index took it in from these very octets, or another id shares the 60 bits that it keeps.
        raise BlobUnavailable(Unavailable.GONE, "No part of the message has this id.", retryable=False)

    def _fetch(self, account_id: str, found: FoundBlob) -> OpenBlob:
        differs = False
        for place in found.places:
            with self._cache.spool() as spool:
                if not self._fetch_into(spool, account_id, place):
                    continue
                if not _is_named(found, spool):
                    differs = True
                    continue
                return self._kept((account_id, found.message_blob_id), spool)
        if differs:
            raise BlobUnavailable(
                Unavailable.ALTERED,
                "The mail server gave other octets than those that this id stands for.",
                retryable=False,
            )
        raise BlobUnavailable(Unavailable.GONE, "The mail server has the message no more.", retryable=False)

    def _fetch_into(self, spool: Spool, account_id: str, place: Place) -> bool:
        def write(piece: bytes) -> None:
            if spool.size + len(piece) > self._largest_octets:
                raise BlobUnavailable(
                    Unavailable.TOO_LARGE,
                    f"The message is larger than the {self._largest_octets} octets that this server gives.",
                    retryable=False,
                )
            spool.write(piece)

        try:
            return self._fetchers[account_id].fetch(place, write)
        except ImapFailure as failure:
            # Its text names the host and the login; that is the operator's business, the code is enough for an agent.
            raise BlobUnavailable(
                Unavailable.MAIL_SERVER, f"The mail server cannot be asked now ({failure.code}).", retryable=True
            ) from failure

    def _proven(self, account_id: str, known_id: str, octets: bytes) -> OpenBlob:
        if blob_id(message_digest(octets)) != known_id:
            raise BlobUnavailable(Unavailable.ALTERED, "The octets are not those of this id.", retryable=False)
        with self._cache.spool() as spool:
            for start in range(0, len(octets), _PIECE_OCTETS):
                spool.write(octets[start : start + _PIECE_OCTETS])
            return self._kept((account_id, known_id), spool)

    def _kept(self, key: tuple[str, str], spool: Spool) -> OpenBlob:
        blob = spool.finished()
        self._cache.put(key, blob)
        return blob


def _is_named(found: FoundBlob, spool: Spool) -> bool:
    """Whether what was fetched is the message that the id names, as far as the id can tell."""
    if is_unprovable_email_id(found.email_id):
        return True
    if is_unstable_email_id(found.email_id):
        with spool.finished() as octets:
            digest = canonical_digest(octets.read(0, MAX_HEADER_OCTETS))
        return digest is not None and unstable_email_id(digest) == found.email_id
    return blob_id(spool.digest()) == found.message_blob_id


class _Turns:
    """A lock for each key that is being worked on, and none for the others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], tuple[threading.Lock, int]] = {}

    @contextmanager
    def turn(self, key: tuple[str, str]) -> Iterator[None]:
        with self._lock:
            lock, waiting = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = lock, waiting + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                _, waiting = self._held[key]
                if waiting == 1:
                    del self._held[key]
                else:
                    self._held[key] = lock, waiting - 1
