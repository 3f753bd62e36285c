"""What can go wrong in the reader, by whose fault.

- the caller: `shared.problem.Problem`, made by jmap and the private socket (a status, a code, a fix)
- the operator: `shared.settings.ConfigurationError`, exit status 2 at start
- the mail server or the network: `shared.imap_login.ImapFailure`, the connection is finished and tried again later;
  `Refused`, one command was answered NO or BAD and the connection lives
- the machine: `AccessUnavailable`; the answer is refused, and no mail is shown unrecorded
- us: an assertion
"""

import re
from typing import Final

# The server wants to be left alone; nothing smaller fares better (RFC 5530 §3; OVERQUOTA is Gmail's for bandwidth).
_THROTTLING: Final = frozenset({"OVERQUOTA", "LIMIT", "THROTTLED"})
_RESPONSE_CODE: Final = re.compile(r"\[([A-Z-]{1,40})[ \]]")


class Refused(Exception):  # noqa: N818 - names what the server did
    """The server answered NO or BAD to one command; the connection is as it was.

    `verb` is the command, `answer` is `NO` or `BAD`, `code` the response code (RFC 5530) or the empty string, `text`
    the server's words in printable ASCII.
    """

    def __init__(self, verb: str, answer: str, untrusted_text: str) -> None:
        text = "".join(character if " " <= character <= "~" else "?" for character in untrusted_text)[:200]
        found = _RESPONSE_CODE.match(text)
        super().__init__(f"{verb}: {answer} {text}")
        self.verb, self.answer, self.text = verb, answer, text
        self.code = found[1] if found else ""

    @property
    def is_throttling(self) -> bool:
        """Whether the server asks to be left alone for a while."""
        return self.code in _THROTTLING or "throttled" in self.text.lower()


class AccessUnavailable(Exception):  # noqa: N818 - names the state of things
    """Tokens cannot be looked up or the read log cannot be written (disk full, locked, damaged). Retryable."""
