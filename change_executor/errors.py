"""What can go wrong in the executor, by whose fault.

- the caller: `shared.problem.Problem`, made by intake and review (a status, a code, a fix)
- the operator: `shared.settings.ConfigurationError`, exit status 2 at start
- the mail server or the network: `shared.imap_login.ImapFailure`; the proposal waits or goes to reconcile
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
