"""How a proposal ended, why its last step did not succeed, and why it waits: closed codes, each with one meaning."""

from enum import StrEnum


class Outcome(StrEnum):
    """`outcome_code` of a proposal."""

    MOVED = "moved"
    # the server kept the message and dropped some of its flags or keywords
    MOVED_FLAGS_LOST = "moved_flags_lost"
    MOVED_BACK = "moved_back"
    MOVED_BACK_FLAGS_LOST = "moved_back_flags_lost"
    # a fresh reader does not know the message, or no copy of it lies in incoming
    MESSAGE_NOT_FOUND = "message_not_found"
    # the reviewed copy is gone from where it lay: moved or deleted by somebody else
    MESSAGE_GONE = "message_gone"
    MESSAGE_CHANGED = "message_changed"
    # another UIDVALIDITY: the mailbox is not the one that was looked at
    MAILBOX_CHANGED = "mailbox_changed"
    SERVER_REFUSED = "server_refused"
    # the queue does not allow it, or the server refused it
    UNDO_NOT_PERMITTED = "undo_not_permitted"
    # after a doubt: the message lies where it lay, and the quiet time is over
    UNDO_DID_NOT_HAPPEN = "undo_did_not_happen"
    # a person settled the move, so that nobody knows the UID that the message got
    UNDO_PLACE_UNKNOWN = "undo_place_unknown"
    # the approval was given under other rules; a person decides again
    POLICY_CHANGED = "policy_changed"
    # an older copy of the journal was put back after the approval; a person decides again
    RESTORED = "restored"
    # a person revoked the agent that had proposed it
    AGENT_REVOKED = "agent_revoked"
    NOT_DECIDED_IN_TIME = "not_decided_in_time"
    SETTLED_BY_PERSON = "settled_by_person"


class Waiting(StrEnum):
    """`waiting_code` of a proposal."""

    STOPPED = "stopped"
    MOVES_PER_HOUR = "moves_per_hour"
    MOVES_PER_DAY = "moves_per_day"
    # a command of another proposal about the same message may be under way: two at once would both succeed
    BEING_MOVED = "being_moved"
    MAIL_SERVER_UNREACHABLE = "mail_server_unreachable"
    LOGIN_REFUSED = "login_refused"
    # TLS failed, or the certificate is not trusted
    CERTIFICATE_REFUSED = "certificate_refused"
    NO_STARTTLS = "no_starttls"
    # a file of the login (its secret, its CA) cannot be read, or the secret's command failed
    SECRET_UNREADABLE = "secret_unreadable"  # noqa: S105 - a code
    MAILBOX_REFUSED = "mailbox_refused"
    # both names of the move are of one mailbox, so that nothing would be moved
    SAME_MAILBOX = "same_mailbox"
    # the server offers no MOVE any more, and the queue does not allow copying, or UIDPLUS is missing too
    MOVE_NOT_OFFERED = "move_not_offered"
    QUEUE_NOT_CONFIGURED = "queue_not_configured"
    READER_UNREACHABLE = "reader_unreachable"
    # the reader answers and does not take the executor for the executor
    READER_REFUSED = "reader_refused"
    # the queue's `account` is none of the reader's
    ACCOUNT_UNKNOWN = "account_unknown"
    # the reader does not know the message and says that it has not looked everywhere lately
    NOT_FOUND_YET = "not_found_yet"
    # after a doubt: found only where it lay; a command that was sent may still run late
    QUIET_TIME = "quiet_time"
    # after a doubt: what looking cannot settle a person settles
    SETTLE = "settle"
    # the moved message was found in another destination too: somebody else moved it at the same moment
    MOVED_TWICE = "moved_twice"
    # after a doubt: another UIDVALIDITY, so that looking tells nothing
    MAILBOX_CHANGED = "mailbox_changed"
    # after a doubt: more new messages than are looked through
    TOO_MANY_TO_LOOK_AT = "too_many_to_look_at"
