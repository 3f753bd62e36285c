"""What can go wrong in the executor, by whose fault.

- the caller: `shared.problem.Problem`, made by intake and review (a status, a code, a fix)
- the operator: `shared.settings.ConfigurationError`, exit status 2 at start
- the mail server or the network: `shared.imap_login.ImapFailure`; the proposal waits or goes to reconcile
- the mail server's rights or names: `MailboxRefused`; the proposal waits, and a start ends with the mend
- the machine: `JournalUnavailable`; the action is refused, and nothing is done unrecorded
- us: an assertion
"""


class JournalUnavailable(Exception):  # noqa: N818 - names the state of things
    """The journal cannot be written or read (disk full, locked, damaged). Retryable once that is mended."""


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
