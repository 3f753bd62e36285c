"""Header fields in the forms of RFC 8621 §4.1.2, and the `header:...` properties that name them (§4.1.3)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, TypeAlias

from shared.message.addresses import Address, AddressGroup, parse_groups
from shared.message.dates import parse_date
from shared.message.fields import JSON, HeaderField
from shared.message.ids import parse_message_ids, parse_urls
from shared.message.words import decode_words, nfc

Groups: TypeAlias = tuple[AddressGroup, ...]
KnownGroups: TypeAlias = dict[HeaderField, Groups]


class HeaderForm(StrEnum):
    """RFC 8621 §4.1.2; each value is the suffix that names the form."""

    RAW = "asRaw"
    TEXT = "asText"
    ADDRESSES = "asAddresses"
    GROUPED_ADDRESSES = "asGroupedAddresses"
    MESSAGE_IDS = "asMessageIds"
    DATE = "asDate"
    URLS = "asURLs"


class BadHeaderProperty(ValueError):  # noqa: N818 - the name is the finding
    """A `header:...` property that RFC 8621 §4.1.3 does not allow; `spelled` is what was asked, `detail` says why."""

    def __init__(self, spelled: str, detail: str) -> None:
        super().__init__(f"{spelled!r}: {detail}")
        self.spelled = spelled
        self.detail = detail


@dataclass(frozen=True, slots=True)
class HeaderProperty:
    """What a `header:...` property asks for; `spelled` is the request's spelling, which names it in the answer."""

    spelled: str
    name: str
    form: HeaderForm
    all_instances: bool


_NAME: Final = re.compile(r"[!-9;-~]{1,998}")

_TEXT_ONLY: Final = frozenset({"subject", "comments", "keywords"})
_ADDRESS_FIELDS: Final = frozenset(
    {"from", "sender", "reply-to", "to", "cc", "bcc"}
    | {"resent-from", "resent-sender", "resent-reply-to", "resent-to", "resent-cc", "resent-bcc"}
)
_ID_FIELDS: Final = frozenset({"message-id", "in-reply-to", "references", "resent-message-id"})
_DATE_FIELDS: Final = frozenset({"date", "resent-date"})
_URL_FIELDS: Final = frozenset(
    {"list-help", "list-unsubscribe", "list-subscribe", "list-post", "list-owner", "list-archive"}
)
_RAW_ONLY: Final = frozenset({"return-path", "received"})

_ALLOWED: Final = (
    (_TEXT_ONLY, {HeaderForm.TEXT}),
    (_ADDRESS_FIELDS, {HeaderForm.ADDRESSES, HeaderForm.GROUPED_ADDRESSES}),
    (_ID_FIELDS, {HeaderForm.MESSAGE_IDS}),
    (_DATE_FIELDS, {HeaderForm.DATE}),
    (_URL_FIELDS, {HeaderForm.URLS}),
    (_RAW_ONLY, set[HeaderForm]()),
)


# The properties that a client asks for are the same from message to message.
@lru_cache(maxsize=256)
def parse_header_property(spelled: str) -> HeaderProperty:
    """Return what a property like `header:From:asAddresses:all` asks for, or raise `BadHeaderProperty`.

    RFC 8621 §4.1.3: the form, if any, comes before `:all`; each field of RFC 5322 and RFC 2369 has its own forms, any
    other field may be read in every form.
    """
    prefix, *pieces = spelled.split(":")
    if prefix != "header" or not pieces or _NAME.fullmatch(pieces[0]) is None:
        raise BadHeaderProperty(spelled, "a header property is header:{name}, the name printable ASCII without a colon")
    name, suffixes = pieces[0], pieces[1:]
    all_instances = suffixes[-1:] == ["all"]
    if all_instances:
        suffixes = suffixes[:-1]
    if len(suffixes) > 1:
        raise BadHeaderProperty(spelled, "after the name come one form and then :all, each at most once")
    form = HeaderForm.RAW
    if suffixes:
        try:
            form = HeaderForm(suffixes[0])
        except ValueError:
            raise BadHeaderProperty(spelled, "the form is none of RFC 8621 section 4.1.2") from None
    if not is_allowed(name, form):
        raise BadHeaderProperty(spelled, "this field may not be read in this form")
    return HeaderProperty(spelled, name, form, all_instances)


def is_allowed(name: str, form: HeaderForm) -> bool:
    """Whether RFC 8621 §4.1.2 lets the field be read in the form."""
    if form is HeaderForm.RAW:
        return True
    for names, forms in _ALLOWED:
        if name.lower() in names:
            return form in forms
    return True


def raw(field: HeaderField) -> str:
    """Return RFC 8621 §4.1.2.1 Raw: NUL dropped, bad UTF-8 as U+FFFD."""
    return field.value.decode("utf-8", "replace").replace("\0", "")


def unfolded(field: HeaderField) -> str:
    """Return the raw value in one line: line breaks go, the white space after them stays (RFC 5322 §2.2.3)."""
    text = raw(field)
    return text.replace("\r\n", "").replace("\n", "") if "\n" in text else text


def text(field: HeaderField) -> str:
    """Return RFC 8621 §4.1.2.2 Text."""
    return nfc(decode_words(unfolded(field).lstrip(" \t")))


def addresses_json(addresses: Sequence[Address]) -> list[JSON]:
    """Return addresses as RFC 8621 §4.1.2.3 writes them."""
    return [{"name": address.name, "email": address.email} for address in addresses]


def _grouped_json(groups: Groups) -> JSON:
    return [{"name": group.name, "addresses": addresses_json(group.addresses)} for group in groups]


def _list_or_none(values: tuple[str, ...] | None) -> JSON:
    return None if values is None else list(values)


_OF_GROUPS: Final[Mapping[HeaderForm, Callable[[Groups], JSON]]] = {
    HeaderForm.ADDRESSES: lambda groups: addresses_json([one for group in groups for one in group.addresses]),
    HeaderForm.GROUPED_ADDRESSES: _grouped_json,
}

_READERS: Final[Mapping[HeaderForm, Callable[[HeaderField], JSON]]] = {
    HeaderForm.RAW: raw,
    HeaderForm.TEXT: text,
    HeaderForm.MESSAGE_IDS: lambda field: _list_or_none(parse_message_ids(unfolded(field))),
    HeaderForm.DATE: lambda field: parse_date(unfolded(field)),
    HeaderForm.URLS: lambda field: _list_or_none(parse_urls(unfolded(field))),
}


def read_header(
    instances: Sequence[HeaderField], form: HeaderForm, known_groups: KnownGroups, *, all_instances: bool = False
) -> JSON:
    """Return a field's value: the last instance's or None; with `all_instances` a list in order (RFC 8621 §4.1.3).

    `known_groups` holds the address lists that were read already, and gets those that are read now.
    """
    if all_instances:
        return [_value(field, form, known_groups) for field in instances]
    return _value(instances[-1], form, known_groups) if instances else None


def _value(field: HeaderField, form: HeaderForm, known_groups: KnownGroups) -> JSON:
    from_groups = _OF_GROUPS.get(form)
    if from_groups is None:
        return _READERS[form](field)
    groups = known_groups.get(field)
    if groups is None:
        groups = known_groups[field] = parse_groups(unfolded(field))
    return from_groups(groups)
