"""What the mail server lets the move login do with a queue's mailboxes (RFC 4314 §2.1), as far as it says."""

from typing import Final

from change_executor.config import Queue
from change_executor.errand import mailboxes_of
from change_executor.looking import Looking as MailLooking
from shared.doctor.finding import Fault, Looking

_OUT: Final = frozenset("rte")
_IN: Final = frozenset("i")
_FLAGS: Final = frozenset("sw")
# Cyrus alone offers it: an experiment that nobody else took up. Its name its administrator may hide.
_CYRUS: Final = "ANNOTATE-EXPERIMENT-1"
# Mailboxes made, deleted or given to others: nothing here ever does that.
_TOO_MANY: Final = frozenset("kxa")


def look_at_rights(session: MailLooking, queue: Queue, looking: Looking) -> None:
    """Compare the rights of this login with what moving and undoing need, and with what nothing needs."""
    if session.has_capability(_CYRUS):
        looking.notes.append(
            f"{queue.id}: on Cyrus \\Seen is each login's own, and what others have read comes back unread after a "
            "move unless `sharedseen` is set on all mailboxes of the queue (docs/providers.md)"
        )
    targets = sorted(mailboxes_of(queue) - {queue.incoming})
    rights = {name: session.rights(name) for name in (queue.incoming, *targets)}
    known = {name: each for name, each in rights.items() if each is not None}
    if len(known) != len(rights):
        looking.notes.append(f"{queue.id}: the server tells no rights: only this program is narrow")
        return
    for name, wanted in ((queue.incoming, _OUT), *((name, _IN) for name in targets)):
        if not known[name] >= wanted:
            lacking = "".join(sorted(wanted - known[name]))
            fix = f"Give this login `{lacking}` on {name!r} (docs/providers.md)"
            looking.find(Fault.MOVE_RIGHTS, f"{queue.id}: the login lacks `{lacking}` on {name!r}", fix)
    for name, each in known.items():
        if each & _TOO_MANY:
            surplus = "".join(sorted(each & _TOO_MANY))
            looking.notes.append(f"{queue.id}: the login has `{surplus}` on {name!r}, which nothing here needs")
    if not all(known[name] >= _FLAGS for name in targets):
        looking.notes.append(f"{queue.id}: moved messages lose flags: give `s` and `w` on the destinations")
    if queue.undo and not (known[queue.incoming] >= _IN and all(known[name] >= _OUT for name in targets)):
        looking.notes.append(f"{queue.id}: undo will be refused: it needs `lrswite` on all mailboxes")
