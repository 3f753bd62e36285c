"""The page's own words: closed tables of sentences, and times and sizes as people say them.

A code that has no sentence here is shown as a code; a text from outside is never part of one of these sentences.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from change_executor.journal.surroundings import Surroundings
from change_executor.outcomes import Outcome, Waiting
from change_executor.undoing import UndoRefusal
from shared.proposal import State

STATES: Final = {
    State.PENDING: "waiting for a decision",
    State.APPROVED: "approved, about to be moved",
    State.APPLYING: "being moved",
    State.DOUBTFUL: "perhaps moved",
    State.APPLIED: "moved",
    State.UNDOING: "being moved back",
    State.UNDO_DOUBTFUL: "perhaps moved back",
    State.UNDONE: "moved back",
    State.REJECTED: "rejected",
    State.WITHDRAWN: "withdrawn by the agent",
    State.EXPIRED: "expired undecided",
    State.STALE: "not moved: no longer as proposed",
    State.FAILED: "not moved: refused by the mail server",
}

# Which colour a state has: quiet for what went as asked, loud for what a person should look at.
TONES: Final = {
    State.APPLIED: "good",
    State.DOUBTFUL: "alarm",
    State.UNDO_DOUBTFUL: "alarm",
    State.FAILED: "alarm",
    State.STALE: "warn",
    State.EXPIRED: "warn",
}

WAITING: Final = {
    Waiting.STOPPED: "Everything is stopped. It goes on when someone resumes.",
    Waiting.MOVES_PER_HOUR: "This hour's limit of moves is reached. It goes on by itself.",
    Waiting.MOVES_PER_DAY: "This day's limit of moves is reached. It goes on by itself.",
    Waiting.MOVE_NOT_OFFERED: (
        "The mail server offers no MOVE any more. Someone has to change the server, or the queue's `without_move`."
    ),
    Waiting.MAIL_SERVER_UNREACHABLE: "The mail server does not answer. It is tried again by itself.",
    Waiting.LOGIN_REFUSED: (
        "The mail server refuses the executor's login. Someone has to mend `user` or the secret in executor.toml. "
        "It is tried again ever more seldom, at last once an hour; a restart tries at once."
    ),
    Waiting.CERTIFICATE_REFUSED: (
        "The mail server's certificate is not trusted. Someone has to mend `host`, `tls` or `ca_file` in executor.toml."
    ),
    Waiting.NO_STARTTLS: (
        'The mail server does not offer STARTTLS. Someone has to set `tls = "tls"` and its port in executor.toml.'
    ),
    Waiting.SECRET_UNREADABLE: (
        "The executor cannot read the secret (or the CA file) of its mail login. "
        "Someone has to mend that file or its owner; the log names it."
    ),
    Waiting.MAILBOX_REFUSED: "The mail server does not open one of the mailboxes. Someone has to mend its rights.",
    Waiting.SAME_MAILBOX: (
        "The destination is the incoming mailbox under another name. "
        "Someone has to give the queue another mailbox in executor.toml."
    ),
    Waiting.QUEUE_NOT_CONFIGURED: "The configuration no longer has this queue or destination.",
    Waiting.READER_UNREACHABLE: "The reader does not answer, so nobody knows where to look. It is tried again.",
    Waiting.READER_REFUSED: (
        "The reader does not answer the executor's user. "
        "Someone has to set `[server] executor_uid` in reader.toml, and let that user into the socket's group."
    ),
    Waiting.ACCOUNT_UNKNOWN: (
        "The reader has no account of the name that the queue gives. "
        "Someone has to mend the queue's `account` in executor.toml."
    ),
    Waiting.NOT_FOUND_YET: "The reader does not know this message yet and is still syncing. It is tried again.",
    Waiting.QUIET_TIME: (
        "The message lies where it was, but a command that was sent may still run late. "
        "It is looked at again after the quiet time."
    ),
    Waiting.BEING_MOVED: (
        "A move of this message, for another proposal, may still be under way. It goes on once that is known."
    ),
    Waiting.SETTLE: "Looking did not tell what happened. Look into both mailboxes yourself and settle it.",
    Waiting.MOVED_TWICE: "The message lies in another destination too: somebody else moved it at the same moment.",
    Waiting.MAILBOX_CHANGED: "A mailbox was made anew, so looking tells nothing. Look yourself and settle it.",
    Waiting.TOO_MANY_TO_LOOK_AT: "More new messages arrived than are looked through. Look yourself and settle it.",
}

OUTCOMES: Final = {
    Outcome.MOVED: "It was moved, and the copy in the new mailbox is the one that was reviewed.",
    Outcome.MOVED_FLAGS_LOST: "It was moved; the mail server dropped some of its flags or keywords.",
    Outcome.MOVED_BACK: "It was moved back.",
    Outcome.MOVED_BACK_FLAGS_LOST: "It was moved back; the mail server dropped some of its flags or keywords.",
    Outcome.MESSAGE_NOT_FOUND: "The message does not lie in the incoming mailbox.",
    Outcome.MESSAGE_GONE: "The copy that was reviewed is gone: somebody else moved or deleted it.",
    Outcome.MESSAGE_CHANGED: "What lies there is not the message that was reviewed.",
    Outcome.MAILBOX_CHANGED: "The mailbox was made anew meanwhile; it is not the one that was looked at.",
    Outcome.SERVER_REFUSED: "The mail server refused the move.",
    Outcome.UNDO_NOT_PERMITTED: "It was not moved back: the queue or the mail server does not allow it.",
    Outcome.UNDO_PLACE_UNKNOWN: "It was not moved back: a person settled the move, so nobody knows its place.",
    Outcome.UNDO_DID_NOT_HAPPEN: "It was not moved back; it lies where it was moved to.",
    Outcome.POLICY_CHANGED: "The approval was given under other rules, so it has to be decided again.",
    Outcome.RESTORED: "After the approval the journal was put back from a copy, or taken back to an older release; it "
    "has to be decided again.",
    Outcome.NOT_DECIDED_IN_TIME: "Nobody decided in time.",
    Outcome.AGENT_REVOKED: "The agent that proposed it was revoked.",
    Outcome.SETTLED_BY_PERSON: "The outcome was uncertain; a person looked and settled it.",
}

REFUSED: Final = {
    "no_evidence": "It cannot be approved yet: the message itself was not looked at so far.",
    "reading_damaged": "It cannot be approved: the stored reading is not the one that was recorded.",
    "queue_changed": "It cannot be approved: the configuration no longer has this queue or destination.",
    "expired": "It cannot be approved any more: its time to be decided is over.",
    "stopped": "It cannot be approved while everything is stopped. Rejecting is possible; approving is again once "
    "someone resumes.",
    "undo_not_permitted": "It cannot be moved back: the queue or the mail login does not allow it.",
    "another_is_open": "It cannot be moved back while another proposal about the same message is open.",
    "changed": "This changed while you were looking, so this click decided nothing. Here is how it is now.",
    "transition": "That cannot be decided any more. Here is how it is now.",
}

NOT_TAKEN_BACK: Final = {
    UndoRefusal.UNKNOWN_PROPOSAL: "It is not known any more.",
    UndoRefusal.NOT_APPLIED: "It is being moved back already, or was not moved.",
    UndoRefusal.UNDO_NOT_PERMITTED: REFUSED["undo_not_permitted"],
    UndoRefusal.UNDO_PLACE_UNKNOWN: "It cannot be moved back: a person settled the move, so nobody knows its place.",
    UndoRefusal.ANOTHER_IS_OPEN: REFUSED["another_is_open"],
}

EVENTS: Final = {
    "proposal:propose": "Proposed.",
    "proposal:evidence": "The message was looked at.",
    "proposal:wait": "It began to wait.",
    "proposal:revoke": "Its agent was revoked.",
    "move:step": "A step of copying was checked and written down.",
    "move:concluded": "What became of the command was written down.",
    "text:keep": "A text was kept.",
    "move:intended": "What was about to be sent to the mail server was written down.",
    "proposal:approve": "Approved.",
    "proposal:reject": "Rejected.",
    "proposal:undo": "Moving it back was asked for.",
    "proposal:settle_applied": "Settled: it was moved.",
    "proposal:settle_failed": "Settled: it was not moved.",
    "proposal:settle_undone": "Settled: it was moved back.",
    "proposal:withdraw": "The agent withdrew it.",
    "proposal:expire": "Its time was over.",
    "proposal:policy_changed": "The policy changed, so the approval no longer holds.",
    "proposal:restore": "A copy of the journal was put back, so the approval no longer holds.",
    "proposal:absent": "The message was not there.",
    "proposal:claim": "The move began.",
    "proposal:moved": "The mail server moved it, and the new copy was checked.",
    "proposal:changed": "The message was not the one that was reviewed.",
    "proposal:refused": "The mail server refused.",
    "proposal:doubt": "The connection broke at a moment that leaves the outcome uncertain.",
    "proposal:nothing_sent": "Nothing had been sent to the mail server; it goes on.",
    "proposal:found_in_target": "Looked for: the message is in the destination.",
    "proposal:found_in_source": "Looked for: the message is in incoming.",
    "proposal:found_in_neither": "Looked for: the message is in neither mailbox.",
}

# What is no proposal's own event; the log lists them too.
EVENTS_OF_THE_HOUSE: Final = {
    "agent:admit": "An agent that was revoked may propose again:",
    "agent:revoke": "An agent was revoked, with all its tokens:",
    "intake:refuse": "A proposal was refused.",
    "intake:refuse_summary": "Further proposals were refused.",
    "journal:adopt": "A journal of an earlier version was taken over.",
    "journal:restore": "A copy of the journal was put back.",
    "journal:downgrade": "The journal was taken back to the tables of an older release.",
    "link:made": "A link to sign in was made for",
    "link:spent": "A link was used by",
    "move:concluded": "What became of the move was written down.",
    "move:step": "A step of the move was written down.",
    "passkey:added": "A passkey was added:",
    "passkey:removed": "A passkey was removed:",
    "passkey:used": "A passkey was used:",
    "person:added": "May decide from now on:",
    "person:password_forgotten": "The password was given up by",
    "person:removed": "Decides no more:",
    "person:role_changed": "Another role was given to",
    "person:password_rehashed": "The password was stored anew for",
    "person:password_set": "A password was set by",
    "queue:examine": "The mailboxes of a queue were looked at and found right:",
    "session:began": "Signed in:",
    "session:ended": "Signed out:",
    "session:proved": "Showed again who they are:",
    "session:others_ended": "Other sessions were ended by",
    "stop:press": "Everything was stopped.",
    "stop:release": "Everything was resumed.",
    "text:keep": "A text was kept.",
    "texts:forget": "Texts of old proposals were forgotten.",
    "undo:ask": "Taking back was asked for, of all that was moved since a moment for",
    "token:create": "A token to propose was made:",
    "token:revoke": "A token to propose was revoked:",
}

# What people look for in the log, by `log_view.What`.
LOGGED: Final = {
    "proposed": "proposals",
    "decided": "decisions",
    "moved": "moves",
    "access": "people, sessions, tokens, stop",
    "everything": "every single event",
}

# Why the reader's word is missing, where nothing waits for it.
READER: Final = {
    Waiting.READER_UNREACHABLE: "The reader does not answer. Reading and proposing may be standing still.",
    Waiting.READER_REFUSED: WAITING[Waiting.READER_REFUSED],
    Waiting.ACCOUNT_UNKNOWN: WAITING[Waiting.ACCOUNT_UNKNOWN],
}

# The keys as the help lists them; `page.js` acts on them.
KEYS: Final = (
    (("j", "k"), "next and previous line of the queue; at a message, j leads to the next one"),
    (("Enter",), "open the line"),
    (("x",), "select the line, to decide several together"),
    (("a",), "go to Approve; Enter then signs. In the queue: look at the line, or at all that are selected"),
    (("r",), "go to the reason for a rejection; Enter then rejects"),
    (("z",), "go to Undo; Enter then takes it back"),
    (("t",), "text or HTML of the message"),
    (("v",), "source of the message, and back"),
    (("/",), "search"),
    (("g q",), "to the queue"),
    (("g l",), "to the log"),
    (("g a",), "to the agents"),
    (("g s",), "to the status"),
    (("?",), "these keys"),
)

# The same events of a move that was being undone, where they would say the opposite.
_EVENTS_OF_UNDO: Final = {
    "proposal:moved": "The mail server moved it back, and the copy there was checked.",
    "proposal:absent": "The message was not there any more, so it was not moved back.",
    "proposal:changed": "What lay there was not the message that was moved, so it was not moved back.",
    "proposal:refused": "It was not moved back: that was refused.",
}

_DONE: Final = {
    State.APPROVED: "Approved. It is being moved now.",
    State.APPLYING: "Approved. It is being moved.",
    State.APPLIED: "Approved and moved.",
    State.REJECTED: "Rejected. Nothing was moved; the agent may propose it again.",
    State.UNDOING: "It is being moved back.",
    State.UNDONE: "It was moved back.",
    State.FAILED: "Settled: it was not moved.",
}


def done(state: State, *, stopped: bool) -> str:
    """Return what the queue says after a decision, from how the proposal stands now."""
    if stopped and state in {State.APPROVED, State.UNDOING}:
        return "Written down. Nothing is moved until someone resumes."
    return _DONE.get(state, f"It is now: {STATES[state]}.")


def instead_of_subject(subject: str | None, *, ended: bool, seen: bool) -> str:
    """Return what stands in a list where there is no subject: None for a message that was not read, or forgotten."""
    if subject is not None:
        return "No subject"
    if not ended:
        return "Not looked at yet"
    return "Its text was forgotten" if seen else "Never looked at"


def sentence(table: Mapping[Any, str], code: str) -> str:
    """Return the sentence of a code, or the code itself where there is none yet."""
    return table.get(code, f"Code: {code}.")


def waiting(code: str, *, stopped: bool) -> str:
    """Return why a proposal waits; what waited for the stop button goes on as soon as that is released."""
    if code == Waiting.STOPPED and not stopped:
        return "Everything was resumed. It goes on now."
    return sentence(WAITING, code)


def happened(kind: str, details: Mapping[str, Any]) -> str:
    """Return what the history says of an event; `details` are those of the event."""
    if details.get("from") == State.UNDOING and kind in _EVENTS_OF_UNDO:
        return _EVENTS_OF_UNDO[kind]
    return sentence(EVENTS | EVENTS_OF_THE_HOUSE, kind)


def who(actor: str) -> tuple[str, str]:
    """Return what kind of actor an event names, and the name."""
    kind, _, name = actor.partition(":")
    return {"person": "", "agent": "the agent "}.get(kind, ""), name or {"executor": "Mailwarrant"}.get(
        kind, f"the {kind}"
    )


def exact(moment: datetime) -> str:
    """Return a time in full, for the hover text and the record."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def ago(moment: datetime, now: datetime) -> str:
    """Return how long ago something was."""
    return "just now" if now - moment < timedelta(minutes=1) else f"{span(now - moment)} ago"


def left(moment: datetime, now: datetime) -> str:
    """Return how long something still has."""
    return "time is over" if moment <= now else f"{_nearest(moment - now)} left"


def span(duration: timedelta) -> str:
    """Return a duration in its largest unit."""
    minutes = int(duration.total_seconds()) // 60
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{max(minutes, 1)} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h"
    return f"{minutes // (24 * 60)} d"


def _nearest(duration: timedelta) -> str:
    # Five days that have begun a second ago are five days, not four. `left` in page.js counts alike.
    minutes = -(-duration // timedelta(minutes=1))
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{(minutes + 30) // 60} h"
    return f"{(minutes + 12 * 60) // (24 * 60)} d"


def size(octets: int) -> str:
    """Return a size as people say it."""
    if octets < 1024:  # noqa: PLR2004 - a KiB
        return f"{octets} octets"
    if octets < 1024 * 1024:
        return f"{octets / 1024:.0f} KiB"
    return f"{octets / 1024 / 1024:.1f} MiB"


_OPENED: Final = {
    "opened": "The agent fetched this message's text before proposing.",
    "not_opened": "When this was proposed, the agent had not fetched this message's text (a preview is not counted).",
    "unknown": "Whether the agent had fetched this message's text cannot be told.",
}


def hint_sentences(hints: dict[str, Any]) -> list[str]:
    """Return what the reader says about the agent and the message, in our words; nothing of it is believed."""
    opened, copies = hints.get("opened"), hints.get("copies")
    state = opened.get("state") if isinstance(opened, dict) else None
    sentences = [_OPENED[state]] if isinstance(state, str) and state in _OPENED else []
    if isinstance(copies, int) and copies > 1:
        sentences.append(f"It knows {copies} copies of this message, in all mailboxes together.")
    if hints.get("fresh") is False:
        sentences.append("It has not looked everywhere lately.")
    return sentences


def counted(count: int, one: str, many: str) -> str:
    """Return a number with the words for it."""
    return f"{count} {one if count == 1 else many}"


def notices(around: Surroundings) -> list[str]:
    """Return what the record of earlier decisions says against hurrying."""
    found = []
    # Before anything was moved every sender is new, and that tells nothing.
    if around.sender_moved is False and around.anything_moved:
        found.append("A new sender: when this was proposed, no earlier message of this sender had been moved here.")
    if around.in_thread_count:
        waits = counted(around.in_thread_count, "other message of its thread waits", "others of its thread wait")
        found.append(f"{waits} for a decision too.")
    return found
