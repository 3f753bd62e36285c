"""What can go wrong in the executor, by whose fault.

- the caller: `shared.problem.Problem`, made by intake and review (a status, a code, a fix)
- the operator: `shared.settings.ConfigurationError`, exit status 2 at start
- the mail server or the network: `shared.imap_login.ImapFailure`; the proposal waits or goes to reconcile
- the mail server's rights or names: `MailboxRefused`; the proposal waits, and a start ends with the mend
- the machine: `JournalUnavailable`; the action is refused, and nothing is done unrecorded
- us: an assertion
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class JournalFault(StrEnum):
    """Why the journal cannot be used; each has a mend in `JOURNAL_MENDS`."""

    # it is not where it was opened, nor is a file in its place
    GONE = "gone"
    # another file lies where it was opened: what is written to the first one, nobody would find again
    REPLACED = "replaced"
    # its file or folder does not let this user read and write
    NOT_PERMITTED = "not_permitted"
    FULL = "full"
    # another process has held it for longer than anybody should
    LOCKED = "locked"
    # its pages are not what SQLite wrote
    DAMAGED = "damaged"
    # what it holds is not what this program can make anything of
    NOT_UNDERSTOOD = "not_understood"
    # all else: the disk does not answer, or not as a disk does
    UNREADABLE = "unreadable"


JOURNAL_MENDS: Final = MappingProxyType(
    {
        JournalFault.GONE: "Mount its disk again, or put the file back where it was; the executor then goes on.",
        JournalFault.REPLACED: "Put the first file back; or end the executor, read docs/backup.md, and start it again.",
        JournalFault.NOT_PERMITTED: "Let the executor's user own the journal (0600) and its folder (0700), writable.",
        JournalFault.FULL: "Free space on its disk; the executor then goes on.",
        JournalFault.LOCKED: "Find the program that holds the journal open for writing (fuser), and end it.",
        JournalFault.DAMAGED: "End the executor, run `change-executor audit verify`, and restore the last backup.",
        JournalFault.NOT_UNDERSTOOD: "Run `change-executor audit verify`; if it finds nothing, this is a bug of ours.",
        JournalFault.UNREADABLE: "Look at the disk and at the machine's log (dmesg).",
    }
)


class JournalUnavailable(Exception):  # noqa: N818 - names the state of things
    """The journal cannot be written or read: `fault` says why. Retryable once that is mended."""

    def __init__(self, detail: str, fault: JournalFault = JournalFault.UNREADABLE) -> None:
        super().__init__(detail)
        self.fault = fault

    @property
    def fix(self) -> str:
        """What the operator does about it."""
        return JOURNAL_MENDS[self.fault]


class VersionChanged(Exception):  # noqa: N818 - names the state of things
    """The proposal is not the one that was looked at: somebody or something changed it meanwhile."""


class NoSuchProposal(Exception):  # noqa: N818 - names the state of things
    """There is no proposal of this id, or not for this asker."""


class AnotherIsOpen(Exception):  # noqa: N818 - names the state of things
    """Queue and Email have another open proposal; there is at most one."""


class MailboxRefused(Exception):  # noqa: N818 - the server's refusal
    """The server answered NO to opening a mailbox of the configuration: it is not there, or the rights do not reach.

    `mailbox` is the configured name; nothing of the server's words is kept.
    """

    def __init__(self, mailbox: str) -> None:
        super().__init__(f"the server does not open the mailbox `{mailbox}`")
        self.mailbox = mailbox
