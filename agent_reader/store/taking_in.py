"""What was read comes into the file: each message whole or not at all, and one that the file refuses stops no other."""

from collections.abc import Iterable
from typing import Final

import apsw

from agent_reader.store import emails, mailboxes, threads
from agent_reader.store.reader import Taken
from agent_reader.store.set_aside import UNREADABLE_FIX
from agent_reader.store.set_aside import put as put_aside
from agent_reader.store.threads import Threaded
from agent_reader.store.writing import Writing
from agent_reader.sync.mirror import SetAside

# What one message can do to the file by itself. Anything else (a full disk, a lock) is no message's fault.
_MESSAGE_ERRORS: Final = (apsw.ConstraintError, apsw.TooBigError, apsw.MismatchError, emails.TooManyInOneSecond)


def put(writing: Writing, mailbox_id: str, taken: Iterable[Taken], aside: Iterable[SetAside]) -> None:
    """Take in copies with what was read of them, and remember those set aside: also those that the file refuses.

    Raises what is no message's fault; the transaction is lost then.
    """
    taken, aside = list(taken), list(aside)
    if taken and threads.threaded(writing) is Threaded.NO:
        threads.begin(writing, Threaded.DONE)
    ids = {uid: reading.id for uid, _, reading in taken}
    mailboxes.recognise(writing, mailboxes.key_of(writing, mailbox_id), ids)
    key = mailboxes.key_of(writing, mailbox_id)
    # Oldest first, so that a Thread begins with the message that began it.
    for uid, state, reading in sorted(taken, key=lambda each: each[2].received_at):
        try:
            with writing.connection:
                emails.put_copy(writing, key, uid, state, reading)
        except _MESSAGE_ERRORS as error:
            aside.append(SetAside(uid, "message_not_stored", type(error).__name__, UNREADABLE_FIX))
        except apsw.SQLError as error:
            # A full disk ends the whole transaction, and the savepoint with it: that is what is to be said.
            if writing.connection.in_transaction:
                raise
            raise _first_of(error) from None
    for message in aside:
        put_aside(writing, key, message)


def _first_of(error: BaseException) -> BaseException:
    while error.__context__ is not None:
        error = error.__context__
    return error
