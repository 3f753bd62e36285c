"""What an answer says of an Email's content: the properties that never change (RFC 8621 §4.1).

Most of what is asked for is at hand: in the summary, which is JSON already, and in the body's texts and parts, which
can be read alone. For all else the message is taken apart.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec

from agent_reader.query.email_get_arguments import EmailGetArguments
from agent_reader.query.shown_email import PartsShown, attachments_of, shows_text, texts_of
from agent_reader.scope import Depth
from agent_reader.store.body_places import LISTS, BodyText, read_body
from agent_reader.store.document import StoredPart, leaf_json
from agent_reader.store.reading import SUMMARY_PROPERTIES
from agent_reader.store.snapshot import StoredEmail
from agent_reader.store.written import Written
from shared.message import (
    DEFAULT_BODY_PROPERTIES,
    DEFAULT_EMAIL_PROPERTIES,
    JSON,
    LEAF_PROPERTIES,
    SERVER_PROPERTIES,
    Message,
    cut_value,
    email_json,
)

# Values as `msgspec` writes them, in the order of the properties that were asked for.
Content = dict[str, Any]

# What `StoredEmail.summary` has.
_IN_SUMMARY: Final = frozenset({"blobId", "size", "hasAttachment", "preview", *SUMMARY_PROPERTIES})
_TEXTS: Final = "bodyValues"

_NOTHING: Final = b'""'

_encode: Final = msgspec.json.Encoder().encode


class Names(NamedTuple):
    """Properties by where they come from: those of the `row` may change, those of the `content` never do.

    `of_message` are those of the content that are not in the summary.
    """

    row: tuple[str, ...]
    content: tuple[str, ...]
    of_message: tuple[str, ...]


def names_of(properties: tuple[str, ...] | None) -> Names:
    """Return the properties that are asked for, each once; None for the RFC's default."""
    # RFC 8620 §5.1: the id is always there.
    wanted = DEFAULT_EMAIL_PROPERTIES if properties is None else tuple(dict.fromkeys(("id", *properties)))
    content = tuple(name for name in wanted if name not in SERVER_PROPERTIES)
    return Names(
        tuple(name for name in wanted if name in SERVER_PROPERTIES),
        content,
        tuple(name for name in content if name not in _IN_SUMMARY),
    )


class ContentAsked:
    """What one answer says of the content of its Emails: the same of each, so it is looked at once what that is."""

    def __init__(self, asked: EmailGetArguments) -> None:
        self.names = names_of(asked.properties)
        self._asked = asked
        self._of_part = DEFAULT_BODY_PROPERTIES if asked.body_properties is None else asked.body_properties
        self._lists = tuple(name for name in self.names.of_message if name in LISTS)
        self._has_body_alone = (
            frozenset(self.names.of_message) <= {_TEXTS, *LISTS}
            and not asked.fetch_all
            and LEAF_PROPERTIES.keys() >= frozenset(self._of_part)
        )
        # Texts are in bodyValues, or nowhere.
        self._of_text, self._of_html = (
            is_fetched and _TEXTS in self.names.of_message for is_fetched in (asked.fetch_text, asked.fetch_html)
        )
        self._parts = PartsShown()

    def at_hand(self, email: StoredEmail) -> Written | None:
        """Return what is said of an Email where the message need not be taken apart for it, None elsewhere."""
        if not self.names.of_message:
            return self.written(self._in_order(email, {}))
        packed = email.source[1]
        if packed is None or not self._has_body_alone or email.depth is Depth.HEADERS:
            return None
        body = read_body(packed, of_text=self._of_text, of_html=self._of_html, lists=self._lists)
        if body is None:
            return None
        texts = [_value_of(text, self._asked.max_body_value_bytes) for text in body.texts]
        values = {_TEXTS: _object([text.member for text in texts])}
        for name, parts in zip(self._lists, body.lists, strict=True):
            values[name] = _array([leaf_json(part, self._of_part) for part in parts])
        return Written(
            _encode(self._in_order(email, {name: values[name] for name in self.names.of_message}))[1:-1],
            self._parts.of(self.names.content, tuple([text.part_id for text in body.texts])),
            any(text.shows_text for text in texts),
        )

    def taken_apart(self, email: StoredEmail, read_message: Callable[[], Message]) -> Content:
        """Return what is asked of an Email, whatever it is."""
        values: Content = {}
        if self.names.of_message:
            message = read_message()
            asked = self._asked
            values = email_json(
                message,
                properties=self.names.of_message,
                body_properties=self._of_part,
                fetch_text=asked.fetch_text,
                fetch_html=asked.fetch_html,
                fetch_all=asked.fetch_all,
                max_body_value_octets=asked.max_body_value_bytes,
            )
            _say_what_is_not_kept(message, values)
        return self._in_order(email, values)

    def written(self, content: Content, cut: Iterable[JSON] = ()) -> Written:
        """Return the JSON of what is said of an Email, and which of its texts go on."""
        parts = self._parts.of(content, texts_of(content), attachments_of(content))
        return Written(_encode(content)[1:-1], parts, shows_text(content), tuple([_encode(each) for each in cut]))

    def _in_order(self, email: StoredEmail, values: Content) -> Content:
        names = self.names
        if len(names.of_message) == len(names.content):
            return values
        known = email.summary_as_written() | values
        return {name: known[name] for name in names.content}


def _object(members: Iterable[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"{%b}" % b",".join(members))


def _array(values: Iterable[bytes]) -> msgspec.Raw:
    return msgspec.Raw(b"[%b]" % b",".join(values))


class _Value(NamedTuple):
    """A text as a member of bodyValues (RFC 8621 §4.1.4)."""

    member: bytes
    shows_text: bool


def _value_of(text: BodyText, max_octets: int) -> _Value:
    json, is_cut = text.json, False
    if max_octets:
        whole: str = msgspec.json.decode(json)
        value = cut_value(whole, max_octets, is_html=text.is_html)
        json, is_cut = _encode(value), len(value) != len(whole)
    member = b'"%b":{"value":%b,"isEncodingProblem":false,"isTruncated":%b}'
    is_cut_to_nothing = is_cut and json == _NOTHING
    return _Value(member % (text.part_id.encode(), json, b"true" if is_cut else b"false"), not is_cut_to_nothing)


def _say_what_is_not_kept(message: Message, values: Content) -> None:
    """A text that was not kept is no empty text: it is cut, to nothing (RFC 8621 §4.1.4 isTruncated)."""
    for part_id, value in values.get(_TEXTS, {}).items():
        part = message.part(part_id)
        if not (isinstance(part, StoredPart) and part.is_kept):
            value["isTruncated"] = True
