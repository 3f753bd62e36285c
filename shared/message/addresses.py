"""Address lists: exact where the sender was, best effort where not (RFC 5322 §3.4 and §4.4, RFC 8621 §4.1.2.3)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from shared.message.syntax import Token, TokenKind, tokens
from shared.message.words import decode_words, nfc

_SPECIALS: Final = "<>,;:@"

# What nearly every sender writes needs no scanner: no comment, route, backslash or literal, one blank between words.
_ATEXT: Final = r"A-Za-z0-9!#$%&'*+/^_`{|}~.\x80-\U0010ffff-"
_WORD: Final = f"[=?{_ATEXT}]++"
_PHRASE: Final = rf'(?:"([ !#-\[\]-~\x80-\U0010ffff]*+)"|({_WORD}(?:[ ]{_WORD})*+))'
_NAME: Final = _PHRASE.replace("[=?", "[@=?")  # what stands before an angle is a name even if it is an address
_USUAL_ADDRESS: Final = re.compile(
    rf"[ \t]*+(?:([{_ATEXT}]++@[{_ATEXT}]++)[ \t]*+(?:,|(?=;)|\Z)"
    rf"|{_NAME}?[ ]?<([@{_ATEXT}]++)>[ \t]*+(?:,|(?=[;<])|\Z))"
)
_USUAL_GROUP_NAME: Final = re.compile(rf"[ \t]*+{_PHRASE}[ ]?:[ \t]*+")
_USUAL_GROUP_END: Final = re.compile(r";[ \t]*+,?")


class Address(NamedTuple):
    """RFC 8621 §4.1.2.3 EmailAddress: the decoded display name or None, and the addr-spec as written."""

    name: str | None
    email: str


class AddressGroup(NamedTuple):
    """RFC 8621 §4.1.2.4 EmailAddressGroup: a named group, or under None the addresses that stand in no group."""

    name: str | None
    addresses: tuple[Address, ...]


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return every mailbox of an address list in order, those of groups among them."""
    return tuple(address for group in parse_groups(text) for address in group.addresses)


def parse_groups(text: str) -> tuple[AddressGroup, ...]:
    """Return the groups of an address list in order; loose neighbours share one group without a name."""
    usual = _usual_groups(text)
    if usual is not None:
        return usual
    reading = _Reading()
    for token in tokens(text, _SPECIALS):
        if token.kind is TokenKind.SPECIAL:
            reading.take_special(token)
        elif token.kind is TokenKind.COMMENT:
            reading.take_comment(token.text)
        else:
            reading.append(token)
    reading.end_group()
    return tuple(reading.groups)


def _usual_groups(text: str) -> tuple[AddressGroup, ...] | None:
    """The groups of a list that is spelled as nearly all are, else None."""
    text = text.rstrip(" \t")
    groups: list[AddressGroup] = []
    name: str | None = None
    members: list[Address] = []
    position = 0
    while position < len(text):
        if found := _USUAL_ADDRESS.match(text, position):
            bare, quoted, words, angle = found.groups()
            members.append(Address(_usual_phrase(quoted, words) or None, angle or bare))
        elif found := _USUAL_GROUP_END.match(text, position):
            if name is not None:
                groups.append(AddressGroup(name, tuple(members)))
                name, members = None, []
        elif found := _USUAL_GROUP_NAME.match(text, position):
            if name is not None or members:
                groups.append(AddressGroup(name, tuple(members)))
            name, members = _usual_phrase(*found.groups()), []
        else:
            return None
        position = found.end()
    if name is not None or members:
        groups.append(AddressGroup(name, tuple(members)))
    return tuple(groups) or None


def _usual_phrase(quoted: str | None, words: str | None) -> str:
    return nfc(decode_words(words) if words else quoted or "").strip()


@dataclass(slots=True)
class _Reading:
    groups: list[AddressGroup] = field(default_factory=list)
    name: str | None = None
    addresses: list[Address] = field(default_factory=list)
    phrase: list[Token] = field(default_factory=list)
    has_at: bool = False
    angle: list[Token] | None = None
    in_angle: bool = False
    comment: str | None = None
    words_before_comment: int = 0

    def take_comment(self, text: str) -> None:
        """The one that follows the addr-spec at once may be the name (RFC 8621 §4.1.2.3), else one before it."""
        if self.comment is None or self.words_before_comment == 0:
            self.comment = text
            self.words_before_comment = len(self.phrase) + len(self.angle or ())

    def append(self, token: Token) -> None:
        if self.words_before_comment:  # it stood within an address
            self.comment, self.words_before_comment = None, 0
        (self.angle if self.in_angle and self.angle is not None else self.phrase).append(token)

    def take_special(self, token: Token) -> None:
        match token.text:
            case "<":
                if self.angle:  # `a <b> <c>`: the comma is missing
                    self.end_address()
                self.angle, self.in_angle = [], True
            case ">":
                self.in_angle = False
            case "," if not self.in_angle or not _is_route(self.angle):
                self.end_address()
            case ";":
                self.end_address()
                if self.name is not None:
                    self.end_group()
            case ":" if self.in_angle:
                self.angle = []  # a source route ends here, RFC 5322 §4.4
            case ":" if not self.has_at:
                name = _phrase_text(self.phrase)
                self.phrase = []
                self.end_group()
                self.name = name
            case _:
                self.has_at = self.has_at or (token.text == "@" and not self.in_angle)
                self.append(token)

    def end_address(self) -> None:
        address = self._address()
        if address is not None:
            self.addresses.append(address)
        self.phrase, self.has_at, self.angle, self.in_angle = [], False, None, False
        self.comment, self.words_before_comment = None, 0

    def _address(self) -> Address | None:
        if not self.phrase and self.angle is None and self.comment is None:
            return None
        comment = nfc(decode_words(self.comment)).strip() if self.comment else ""
        if self.angle is not None:
            email, name = _spelled(self.angle), _phrase_text(self.phrase) or comment
            return Address(name or None, email) if email or name else None
        if not self.has_at:
            text = _phrase_text(self.phrase, decoded=False)
            return Address(comment or None, text) if text else None
        words = list(_joined_words(self.phrase))
        email_word = next(word for word in words if any(token.text == "@" for token in word))
        before = [token for token in self.phrase if token.end <= email_word[0].start]
        return Address(_phrase_text(before) or comment or None, _spelled(email_word))

    def end_group(self) -> None:
        self.end_address()
        if self.name is not None or self.addresses:
            self.groups.append(AddressGroup(self.name, tuple(self.addresses)))
        self.name, self.addresses = None, []


def _is_route(angle: list[Token] | None) -> bool:
    return bool(angle) and angle is not None and angle[0].text == "@"


def _spelled(words: list[Token]) -> str:
    """An addr-spec without white space and comments; a quoted local part keeps its quotes."""
    return "".join(_quote(word.text) if word.kind is TokenKind.QUOTED else word.text for word in words)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _joined_words(phrase: list[Token]) -> Iterator[list[Token]]:
    """Tokens that touch, and those around an `@` or a dot even if blanks stand between (RFC 5322 §4.4)."""
    word: list[Token] = []
    for token in phrase:
        touches = word and (
            token.start == word[-1].end or token.text[:1] in {"@", "."} or word[-1].text[-1:] in {"@", "."}
        )
        if word and not touches:
            yield word
            word = []
        word.append(token)
    if word:
        yield word


def _phrase_text(phrase: list[Token], *, decoded: bool = True) -> str:
    """A display name: quoted-strings are literal (RFC 2047 §5(3)), the rest may hold encoded-words."""
    if len(phrase) == 1 and "=?" not in phrase[0].text:
        return nfc(phrase[0].text).strip()
    pieces: list[str] = []
    plain: list[str] = []
    last_end = phrase[0].start if phrase else 0
    for token in phrase:
        spelled = f" {token.text}" if token.start > last_end else token.text
        last_end = token.end
        if token.kind is not TokenKind.QUOTED:
            plain.append(spelled)
            continue
        if plain:
            pieces.append(decode_words("".join(plain)) if decoded else "".join(plain))
            plain = []
        pieces.append(spelled)
    pieces.append(decode_words("".join(plain)) if decoded else "".join(plain))
    return nfc("".join(pieces)).strip()
