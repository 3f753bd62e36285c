"""Which blob an id means: a whole message, or a part of one, that this snapshot shows (RFC 8620 §6, RFC 8621 §4.1)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agent_reader.imap.values import Place
from agent_reader.store import blobs
from agent_reader.store.document import StoredPart
from agent_reader.store.snapshot import Snapshot, StoredEmail
from shared.identity import is_unprovable_email_id, unprovable_email_id
from shared.message import Message, Part, body_lists


@dataclass(frozen=True, slots=True)
class FoundBlob:
    """A blob that is shown, the Email that it was found in, and where that Email's octets can be had.

    `is_part`: it is a part of the message, else the message. `kept`: its octets, where the store keeps them.
    `is_body`: it holds text of the body.
    """

    blob_id: str
    email_id: str
    message_blob_id: str
    places: tuple[Place, ...]
    is_part: bool
    is_body: bool
    kept: bytes | None = field(default=None, repr=False)


def find_blob(snapshot: Snapshot, untrusted_blob_id: str, go_on: Callable[[], None] = lambda: None) -> FoundBlob | None:
    """Return the blob of this id, or None where nothing that is shown has it; a malformed id is such a one.

    `go_on` is called while it waits for room to read a message, and raises where nobody waits for the blob.
    """
    if not blobs.is_blob_id(untrusted_blob_id):
        return None
    blob_id = untrusted_blob_id
    for email in snapshot.emails([blobs.own_email_id(blob_id)]).values():
        found = _found(snapshot, email, blob_id)
        # Without a place it is held and on its way out, or the scope shows no octets: the cache must not either.
        return found if found.places else None
    return _found_part(snapshot, blob_id, go_on) if blobs.can_be_part(blob_id) else None


def _found_part(snapshot: Snapshot, blob_id: str, go_on: Callable[[], None]) -> FoundBlob | None:
    for email_id in blobs.emails_with_part(snapshot.connection, blob_id):
        for email in snapshot.emails([email_id]).values():
            with snapshot.room.place(email.size, go_on):
                message = snapshot.message(email.key)
                part = next((part for part in _leaves(message) if part.blob_id == blob_id), None)
                # What is kept of a message does not tell what the messages attached to it hold; their octets will.
                if part is not None or _has_attached_message(message):
                    return _found(snapshot, email, blob_id, message, part)
    return None


def _found(
    snapshot: Snapshot, email: StoredEmail, blob_id: str, message: Message | None = None, part: Part | None = None
) -> FoundBlob:
    is_its_place = is_unprovable_email_id(email.id)
    copies = blobs.copies_of(snapshot.connection, email.key)
    return FoundBlob(
        blob_id=blob_id,
        email_id=email.id,
        message_blob_id=str(email.summary["blobId"]),
        # Without a digest the id is that of one copy, and only its octets are the blob.
        places=tuple(each.place for each in copies if not is_its_place or _is_its_own(each, email.id)),
        is_part=message is not None,
        is_body=message is None or (part is not None and _is_body(message, part)),
        kept=part.kept if isinstance(part, StoredPart) else None,
    )


def _leaves(message: Message) -> Iterator[Part]:
    return (part for part in message.root.walk() if not part.is_multipart)


def _has_attached_message(message: Message) -> bool:
    return any(part.is_message for part in _leaves(message))


def _is_body(message: Message, part: Part) -> bool:
    lists = body_lists(message)
    return any(part is each for each in (*lists.text_body, *lists.html_body))


def _is_its_own(copy: blobs.Copy, email_id: str) -> bool:
    return unprovable_email_id(copy.mailbox_handle, copy.place.uidvalidity, copy.place.uid) == email_id
