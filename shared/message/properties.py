"""What the header fields of one entity say about its body: RFC 8621 §4.1.4's EmailBodyPart properties."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from shared.message.defects import DefectCode
from shared.message.fields import Budget, FieldsByName, HeaderField, by_name
from shared.message.headers import unfolded
from shared.message.ids import without_comments
from shared.message.parameters import Parameterised, decoded_name, parse_parameterised
from shared.message.transfer import KNOWN_ENCODINGS

_TYPE: Final = re.compile(r"[!#$%&'*+.^_`{|}~0-9a-z-]+/[!#$%&'*+.^_`{|}~0-9a-z-]+", re.ASCII)
_SAFE_TYPE: Final = "text/plain"  # RFC 2045 §5.2
_IMPLICIT_CHARSET: Final = "us-ascii"  # RFC 2045 §5.2
_NOTHING: Final = Parameterised("", {})

_WANTED: Final = frozenset(
    {
        "content-type",
        "content-disposition",
        "content-transfer-encoding",
        "content-id",
        "content-language",
        "content-location",
    }
)


class EntityHeader(NamedTuple):
    """The fields of an entity, and what they say about its body."""

    fields: tuple[HeaderField, ...]
    by_name: FieldsByName
    type: str
    parameters: Mapping[str, str]
    charset: str | None
    disposition: str | None
    name: str | None
    cid: str | None
    language: tuple[str, ...] | None
    location: str | None
    transfer_encoding: str


def read_entity_header(fields: tuple[HeaderField, ...], default_type: str, budget: Budget) -> EntityHeader:
    """Return what the fields say; of two with one name the last counts, as everywhere (RFC 8621 §4.1.3)."""
    named = by_name(fields)
    found = {name: named[name][-1] for name in _WANTED if name in named}
    content_type = _parameterised(found.get("content-type"))
    part_type = default_type if content_type is None else content_type.value
    if _TYPE.fullmatch(part_type) is None:
        budget.report(DefectCode.BAD_CONTENT_TYPE, _place(found.get("content-type")))
        part_type = _SAFE_TYPE
    parameters = content_type.parameters if content_type is not None else {}
    charset = parameters.get("charset") or (_IMPLICIT_CHARSET if part_type.startswith("text/") else None)
    disposition = _parameterised(found.get("content-disposition"))
    encoding = _transfer_encoding(found.get("content-transfer-encoding"))
    if encoding not in KNOWN_ENCODINGS:
        budget.report(DefectCode.UNKNOWN_TRANSFER_ENCODING, _place(found.get("content-transfer-encoding")))
    return EntityHeader(
        fields=fields,
        by_name=named,
        type=part_type,
        parameters=parameters,
        charset=charset,
        disposition=(disposition.value or None) if disposition is not None else None,
        name=_name(disposition or _NOTHING, parameters),
        cid=_cid(found.get("content-id")),
        language=_language(found.get("content-language")),
        location=_location(found.get("content-location")),
        transfer_encoding=encoding,
    )


def _place(field: HeaderField | None) -> str:
    return f"at octet {field.start}" if field is not None else ""


def _parameterised(field: HeaderField | None) -> Parameterised | None:
    return None if field is None else parse_parameterised(unfolded(field).strip())


def _transfer_encoding(field: HeaderField | None) -> str:
    if field is None:
        return ""
    words = without_comments(unfolded(field)).split(";", 1)[0].lower().split()
    return words[0] if words else ""


def _name(disposition: Parameterised, content_type: Mapping[str, str]) -> str | None:
    """RFC 8621 §4.1.4: the filename of Content-Disposition, else the name of Content-Type, decoded either way."""
    name = disposition.parameters.get("filename") or content_type.get("name")
    return decoded_name(name) or None if name else None


def _cid(field: HeaderField | None) -> str | None:
    """Content-ID without its angle brackets; a sender who forgot them meant the same."""
    if field is None:
        return None
    text = without_comments(unfolded(field)).strip()
    if text.startswith("<") and ">" in text:
        text = text[1 : text.index(">")].strip()
    return text.strip("<>") or None


def _language(field: HeaderField | None) -> tuple[str, ...] | None:
    if field is None:
        return None
    tags = (tag.strip() for tag in without_comments(unfolded(field)).split(","))
    return tuple(tag for tag in tags if tag) or None


def _location(field: HeaderField | None) -> str | None:
    """RFC 2557 §4.4: white space that folding brought into a URI goes."""
    return "".join(unfolded(field).split()) or None if field is not None else None
