"""Authentication-Results: what the owner's own mail server says it verified, and nobody else's claim (RFC 8601).

Any sender can write the field. So only the topmost one that carries the configured authserv-id is believed; the server
that it names must remove forged ones that come from outside (RFC 8601 §5). Without a configured id none is believed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.message.headers import unfolded
from shared.message.model import Message
from shared.message.syntax import comment_end, unquoted

_FIELD_NAME: Final = "authentication-results"

# RFC 8601 §2.2: the absence of a version means this one; another version may mean anything (§2.6).
_VERSION: Final = 1

# A field names three to six methods with a few properties each.
_MAX_FIELD_CHARACTERS: Final = 16 * 1024
_MAX_RESULTS: Final = 100
_MAX_PROPERTIES: Final = 100

_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_TOKEN: Final = re.compile(r"[^\x00-\x20\x7f()<>@,;:\\\"/\[\]?=]++")  # RFC 2045 §5.1, and U-labels (§2.2)
_KEYWORD: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*+)")  # RFC 5321 §4.1.2 Ldh-str, and the `_` of old results
_PVALUE: Final = re.compile(r"[^\x00-\x20\x7f();\"]++")
_DIGITS: Final = re.compile(r"[0-9]{1,9}+")

# RFC 8601 §2.7: what a method says when the message did not hold what its sender claimed.
_FAILURES: Final = frozenset({"fail", "hardfail", "softfail", "permerror", "policy"})


@dataclass(frozen=True, slots=True)
class AuthenticationProperty:
    """RFC 8601 §2.3: what was looked at, such as `header.from=example.org`; the value is the sender's claim."""

    ptype: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class MethodResult:
    """RFC 8601 §2.2 resinfo: one method (`dkim`, `spf`, `dmarc`) and its result in lower case."""

    method: str
    result: str
    reason: str | None = None
    properties: tuple[AuthenticationProperty, ...] = ()


@dataclass(frozen=True, slots=True)
class AuthenticationResults:
    """One field as it parses; no results mean that its server verified nothing (`none`)."""

    authserv_id: str
    version: int
    results: tuple[MethodResult, ...]


class Belief(StrEnum):
    """Whether there is a field to be believed."""

    NOT_CONFIGURED = "notConfigured"
    NO_FIELD = "noField"
    UNREADABLE = "unreadable"
    BELIEVED = "believed"


class AuthenticationVerdict(StrEnum):
    """What the believed results come to. `UNKNOWN`: nothing believed, or nothing verified."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Authentication:
    """The verdict with its source: the authserv-id that was believed, "" for none; `unbelieved` counts other fields."""

    belief: Belief
    source: str
    results: tuple[MethodResult, ...]
    unbelieved: int

    @property
    def verdict(self) -> AuthenticationVerdict:
        """DMARC decides where the server judged it, for it alone ties the result to the From field (RFC 7489 §3).

        Else a passed DKIM or SPF passes, and a failure of one of them without a pass of the other fails.
        """
        dmarc = self._said_by("dmarc")
        if dmarc & {"pass", *_FAILURES}:
            return AuthenticationVerdict.PASSED if "pass" in dmarc else AuthenticationVerdict.FAILED
        said = self._said_by("dkim") | self._said_by("spf")
        if "pass" in said:
            return AuthenticationVerdict.PASSED
        return AuthenticationVerdict.FAILED if said & _FAILURES else AuthenticationVerdict.UNKNOWN

    def _said_by(self, method: str) -> set[str]:
        return {each.result for each in self.results if each.method == method}


def authentication(message: Message, authserv_id: str | None) -> Authentication:
    """Return what the topmost field of the configured authserv-id says; ids compare without letter case.

    RFC 8601 §4.1, stricter: a second field of the same id is not read, for the one above it may not know it.
    """
    fields = [field for field in message.fields if field.name.lower() == _FIELD_NAME]
    if not authserv_id:
        return Authentication(Belief.NOT_CONFIGURED, "", (), len(fields))
    for field in fields:
        reading = _Reading(unfolded(field)[:_MAX_FIELD_CHARACTERS])
        if _same_host(reading.authserv_id() or "", authserv_id):
            parsed = parse_authentication_results(unfolded(field))
            if parsed is None or parsed.version != _VERSION:
                return Authentication(Belief.UNREADABLE, authserv_id, (), len(fields) - 1)
            return Authentication(Belief.BELIEVED, authserv_id, parsed.results, len(fields) - 1)
    return Authentication(Belief.NO_FIELD, "", (), len(fields))


def _same_host(one: str, other: str) -> bool:
    return one.casefold().rstrip(".") == other.casefold().rstrip(".")


def parse_authentication_results(text: str) -> AuthenticationResults | None:
    """Return an unfolded field's value, or None where it breaks the grammar of RFC 8601 §2.2 anywhere.

    A field that breaks off halfway is no result: what was cut off may be what it failed.
    """
    if len(text) > _MAX_FIELD_CHARACTERS:
        return None
    reading = _Reading(text)
    authserv_id = reading.authserv_id()
    if authserv_id is None:
        return None
    version = reading.version()
    try:
        return AuthenticationResults(authserv_id, version, tuple(_all_results(reading)))
    except _NotTheGrammarError:
        return None


def _all_results(reading: "_Reading") -> Iterator[MethodResult]:
    count = 0
    while not reading.is_at_end():
        reading.expect(";")
        if reading.is_at_end() and count:
            return  # a last semicolon is common, and says nothing
        if count == 0 and reading.is_no_result():
            return
        count += 1
        if count > _MAX_RESULTS:
            raise _NotTheGrammarError
        yield reading.result()
    if count == 0:
        raise _NotTheGrammarError  # `no-result / 1*resinfo`


class _NotTheGrammarError(Exception):
    pass


class _Reading:
    """One value from left to right; comments and folding may stand between any two words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self._skip()

    def _skip(self) -> None:
        """CFWS; a comment that nothing closes is no comment, and breaks the grammar where it stands."""
        while True:
            blanks = _BLANKS.match(self.text, self.position)
            self.position = blanks.end() if blanks else self.position
            end = comment_end(self.text, self.position) if self.text.startswith("(", self.position) else None
            if end is None:
                return
            self.position = end

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        self._skip()
        return found[0]

    def _quoted(self) -> str | None:
        found = _QUOTED.match(self.text, self.position)
        if found is None:
            return None
        self.position = found.end()
        self._skip()
        return unquoted(found[1])

    def is_at_end(self) -> bool:
        return self.position >= len(self.text)

    def expect(self, character: str) -> None:
        if not self._has(character):
            raise _NotTheGrammarError

    def _has(self, character: str) -> bool:
        if not self.text.startswith(character, self.position):
            return False
        self.position += 1
        self._skip()
        return True

    def _word(self) -> str:
        word = self._take(_KEYWORD)
        if word is None:
            raise _NotTheGrammarError
        return word.lower()

    def authserv_id(self) -> str | None:
        return self._quoted() or self._take(_TOKEN)

    def version(self) -> int:
        digits = self._take(_DIGITS)
        return int(digits) if digits else _VERSION

    def is_no_result(self) -> bool:
        before = self.position
        if (self._take(_KEYWORD) or "").lower() == "none" and self.is_at_end():
            return True
        self.position = before
        return False

    def result(self) -> MethodResult:
        method = self._word()
        if self._has("/"):
            version = self._take(_DIGITS)
            if version is None or int(version) != _VERSION:
                # RFC 8601 §2.6: an unknown version of a method is not interpreted; its name says so.
                method = f"{method}/{version or ''}"
        self.expect("=")
        result = self._word()
        reason: str | None = None
        properties: list[AuthenticationProperty] = []
        while not self.is_at_end() and not self.text.startswith(";", self.position):
            word = self._word()
            if word == "reason" and reason is None and not properties and self._has("="):
                reason = self._value(_TOKEN)
                continue
            self.expect(".")
            name = self._word()
            self.expect("=")
            properties.append(AuthenticationProperty(word, name, self._value(_PVALUE)))
            if len(properties) > _MAX_PROPERTIES:
                raise _NotTheGrammarError
        return MethodResult(method, result, reason, tuple(properties))

    def _value(self, bare: re.Pattern[str]) -> str:
        quoted = self._quoted()
        if quoted is not None:
            # A quoted local part goes on with its domain: pvalue = [[local-part] "@"] domain-name.
            rest = self._take(_PVALUE) if bare is _PVALUE and self.text.startswith("@", self.position) else None
            return quoted + (rest or "")
        value = self._take(bare)
        if value is None:
            raise _NotTheGrammarError
        return value
