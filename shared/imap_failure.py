"""What goes wrong between a house and a mail server: by whose fault, and what to do."""

from typing import Literal, TypeAlias

from shared.imap_stream import TooLarge, TooSlow
from shared.login_refusals import late_refusal

FailureCode: TypeAlias = Literal[
    "unreachable",
    "certificate",
    "no_starttls",
    "login_refused",
    "refused",  # a command without which nothing goes on
    "too_slow",
    "too_large",
    "throttled",
    "protocol",
    "busy",  # others are being served
    "configuration",  # such as a secret that cannot be read
]


class ImapFailure(Exception):  # noqa: N818 - a failure of the other side is no error of ours
    """Signing in, or a command, did not work out: the server's fault, the network's, or the configuration's.

    `retryable` says whether waiting may help. The connection it came from, if there was one, is finished.
    """

    def __init__(self, code: FailureCode, detail: str, fix: str, *, retryable: bool) -> None:
        super().__init__(f"{detail} {fix}")
        self.code, self.detail, self.fix, self.retryable = code, detail, fix, retryable


def protocol_failure(where: str, error: Exception) -> ImapFailure:
    """Return the failure for a connection that broke, or a server that answered what it may not."""
    if (late := late_refusal(str(error))) is not None:
        detail = f"{where}: the server refuses: {late.meaning} ({printable(str(error))})."
        return ImapFailure("refused", detail, late.fix, retryable=True)
    code: FailureCode
    match error:
        case TooLarge():
            code = "too_large"
        case TooSlow():
            code = "too_slow"
        case OSError():
            code = "unreachable"
        case _:
            code = "protocol"
    return ImapFailure(
        code,
        f"{where}: the connection broke ({type(error).__name__}: {printable(str(error))}).",
        "It is tried again by itself; if it stays, look at the mail server's log.",
        retryable=True,
    )


def printable(untrusted_text: str) -> str:
    """Return a server's words for a terminal and a log: printable ASCII, at most 200 characters."""
    return "".join(character if " " <= character <= "~" else "?" for character in untrusted_text)[:200]
