"""What can go wrong in the reader, by whose fault.

- the caller: `shared.problem.Problem`, made by jmap and the private socket (a status, a code, a fix)
- the operator: `shared.settings.ConfigurationError`, exit status 2 at start
- the mail server or the network: `shared.imap_failure.ImapFailure`, the connection is finished and tried again later;
  `Throttled`, the same, and the server wants to be left alone; `Refused`, one command was answered NO or BAD and the
  connection lives
- the machine: `IndexFull`, no mail comes in until there is room; `MessageDamaged` (`damage.py`), what is kept of a
  message is read again; `IndexDamaged`, somebody has to look; `NoReadingProcess`, mail that the reader could end of
  waits for a process that reads it; `AccessUnavailable`, the answer is refused, and no mail is shown unrecorded
- nobody: `ReadingEnded`, the reader was told to end while messages were read
- us: an assertion
"""

import re
from typing import Final

from shared.imap_failure import ImapFailure, printable
from shared.imap_login import ImapLogin
from shared.login_refusals import late_refusal

# The server wants to be left alone; nothing smaller fares better (RFC 5530 §3; OVERQUOTA is Gmail's for bandwidth).
_THROTTLING: Final = frozenset({"OVERQUOTA", "LIMIT", "THROTTLED"})
_RESPONSE_CODE: Final = re.compile(r"\[([A-Z-]{1,40})[ \]]")
# What servers say that have no code for it (Microsoft, Gmail, Yahoo), each in some released server's own words.
_THROTTLING_WORDS: Final = re.compile(
    r"throttled|back-?off time|rate limit|bandwidth limit|too many (?:simultaneous|commands|requests|connections)",
    re.IGNORECASE,
)
_STATED_WAIT: Final = re.compile(
    r"(?:back-?off time:?|try again (?:in|after)|retry (?:in|after)|wait(?: for)?):? *(\d{1,9}) *"
    r"(milliseconds?|ms|seconds?|secs?|minutes?|mins?|hours?)\b",
    re.IGNORECASE,
)
# By how the word for it begins.
_SECONDS_OF: Final = {"ms": 0.001, "milli": 0.001, "sec": 1.0, "min": 60.0, "hour": 3_600.0}
# Gmail's longest: a day. A server that says more is not believed.
_LONGEST_WAIT_SECONDS: Final = 86_400.0


def stated_wait(untrusted_text: str) -> float | None:
    """Return the seconds that a server's words ask to be left alone for, at most a day; None where they tell none."""
    found = _STATED_WAIT.search(untrusted_text)
    if found is None:
        return None
    unit = next(seconds for word, seconds in _SECONDS_OF.items() if found[2].lower().startswith(word))
    return min(int(found[1]) * unit, _LONGEST_WAIT_SECONDS)


class Refused(Exception):  # noqa: N818 - names what the server did
    """The server answered NO or BAD to one command; the connection is as it was.

    `verb` is the command, `answer` is `NO` or `BAD`, `code` the response code (RFC 5530) or the empty string, `text`
    the server's words in printable ASCII.
    """

    def __init__(self, verb: str, answer: str, untrusted_text: str) -> None:
        text = printable(untrusted_text)
        found = _RESPONSE_CODE.match(text)
        super().__init__(f"{verb}: {answer} {text}")
        self.verb, self.answer, self.text = verb, answer, text
        self.code = found[1] if found else ""

    def as_failure(self, login: ImapLogin) -> ImapFailure:
        """Return what this is where nothing can go on without it, such as a list of the mailboxes."""
        known = late_refusal(self.text)
        meaning = "" if known is None else f": {known.meaning}"
        return ImapFailure(
            "refused",
            f"{login.user} at {login.host}:{login.port}: the server refused {self.verb}{meaning} ({self.text}).",
            "Look at the rights of this login on the mail server." if known is None else known.fix,
            retryable=True,
        )

    @property
    def is_throttling(self) -> bool:
        """Whether the server asks to be left alone for a while."""
        return self.code in _THROTTLING or _THROTTLING_WORDS.search(self.text) is not None


class IndexFull(Exception):  # noqa: N818 - names what the disk is
    """The disk of the index is full: nothing of the transaction landed, and nothing that was there is lost. Retryable.

    `code`, `detail` and `fix` as in the others.
    """

    code: Final = "disk_full"
    detail: Final = "The disk of the index is full: no mail comes in."
    fix: Final = "Free space on the disk of the index; it goes on by itself then, and nothing is lost meanwhile."

    def __init__(self) -> None:
        super().__init__(self.detail)


class IndexDamaged(Exception):  # noqa: N818 - names what was found
    """The file of the index is no database any more in some place. `code`, `detail` and `fix` as in the others."""

    code: Final = "index_damaged"
    detail: Final = "The file of the index is damaged: nothing can be relied on that is read from it."
    fix: Final = (
        "Look at the disk; stop the reader, delete the file that doctor names, start it: all mail is read again."
    )

    def __init__(self) -> None:
        super().__init__(self.detail)


class NoReadingProcess(Exception):  # noqa: N818 - names what the machine lacks
    """None can be started for mail that the reader could end of: it waits, unread and on the server. Retryable.

    `code`, `detail` and `fix` as in the others.
    """

    code: Final = "no_reading_process"
    detail: Final = (
        "No process can be started that reads mail, and the next message is large or has ended one: it waits."
    )
    fix: Final = (
        "Look at the memory and the number of processes that the machine and the unit allow (doctor tries one); it "
        "goes on by itself then, and nothing is lost meanwhile."
    )

    def __init__(self) -> None:
        super().__init__(self.detail)


class ReadingEnded(Exception):  # noqa: N818 - names what happened
    """The reader ends, and what reads for it with it: what was not taken in is fetched again at the next start."""


class Throttled(ImapFailure):
    """The server wants to be left alone for a while; `wait_seconds` is what it said, None where it said nothing.

    `is_quota`: a limit by the hour or the day was reached, so minutes are no use (Gmail's OVERQUOTA).
    """

    def __init__(self, where: str, untrusted_text: str) -> None:
        text = printable(untrusted_text)
        super().__init__(
            "throttled",
            f"{where}: it wants to be left alone for a while ({text}).",
            "Nothing needs to be done; it is tried again later, at the time that the server named if it named one.",
            retryable=True,
        )
        self.wait_seconds = stated_wait(untrusted_text)
        self.is_quota = "OVERQUOTA" in untrusted_text or "bandwidth" in untrusted_text.lower()

    @staticmethod
    def is_meant_by(untrusted_text: str) -> bool:
        """Whether a server's last words mean this."""
        codes = set(_RESPONSE_CODE.findall(untrusted_text))
        return bool(codes & _THROTTLING) or _THROTTLING_WORDS.search(untrusted_text) is not None


class AccessUnavailable(Exception):  # noqa: N818 - names the state of things
    """Tokens cannot be looked up or the read log cannot be written (disk full, locked, damaged). Retryable."""
