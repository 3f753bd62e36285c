"""Which new mail wakes the agent: typed conditions, all of which must hold. Pure.

Every condition but the queue is about what the sender wrote, and a sender can write anything: it saves work, and is no
proof of who wrote.
"""

from dataclasses import dataclass
from typing import Final

from agent_reader.relay.jmap_client import WatchedEmail
from shared.fence import clean_line

# RFC 3834 §2: what is answered by a program must not be answered by another one. Mailing lists are people.
_AUTOMATIC: Final = frozenset({"automaticMail", "deliveryReport", "dispositionReport"})


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """Empty conditions hold for every message. Addresses and domains are compared whole, letter case aside.

    `senders`, `domains`: the one address of From; a message with none or several has no sender. `recipients`: any of To
    and Cc. `mailbox_id`: the mailbox that a queue's mail comes into.
    """

    senders: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    recipients: frozenset[str] = frozenset()
    subject_contains: str = ""
    has_attachment: bool | None = None
    mailbox_id: str | None = None
    admits_automatic: bool = False

    def is_in_queue(self, email: WatchedEmail) -> bool:
        """Whether it lies in the queue's mailbox, or no queue is asked for."""
        return self.mailbox_id is None or self.mailbox_id in email.mailbox_ids

    def matches(self, email: WatchedEmail) -> bool:
        """Whether the message is to wake the agent."""
        return (
            self.is_in_queue(email)
            and (self.admits_automatic or not email.facts & _AUTOMATIC)
            and (not self.senders or email.sender in self.senders)
            and (not self.domains or _domain(email.sender) in self.domains)
            and (not self.recipients or bool(self.recipients & email.recipients))
            and self.subject_contains.casefold() in clean_line(email.subject).text.casefold()
            and (self.has_attachment is None or self.has_attachment == email.has_attachment)
        )


def _domain(sender: str | None) -> str | None:
    return None if sender is None else sender.rpartition("@")[2]
