"""Looks into the kept header of an Email, where `tokens.py` has no answer from the index (RFC 8621 §4.4.1 header).

It is asked of one candidate after the other, newest first, inside SQLite, so that other conditions and a limit spare
most of them.
"""

from typing import Final

import apsw
import msgspec

from agent_reader.store import packing
from agent_reader.store.fold import sort_order
from shared.message.fields import HeaderField
from shared.message.headers import text

FUNCTION: Final = "has_header"


class _KeptHeader(msgspec.Struct, array_like=True, frozen=True):
    """The beginning of what `document.py` keeps of a message; what follows is not made into objects."""

    part_id: msgspec.Raw
    type: msgspec.Raw
    parameters: msgspec.Raw
    charset: msgspec.Raw
    disposition: msgspec.Raw
    name: msgspec.Raw
    cid: msgspec.Raw
    language: msgspec.Raw
    location: msgspec.Raw
    transfer_encoding: msgspec.Raw
    fields: tuple[tuple[str, bytes], ...]


_DECODER: Final = msgspec.msgpack.Decoder(_KeptHeader)


def offer(connection: apsw.Connection) -> None:
    """Give a connection the function: has_header(document, name in lower case, folded text or null)."""
    connection.create_scalar_function(FUNCTION, _has_header, 3, deterministic=True)


def folded(untrusted_text: str) -> str:
    """Return a text as it is looked for: letter case, accents and runs of white space aside."""
    return sort_order(untrusted_text)


def _has_header(*arguments: object) -> bool:
    packed, name, wanted = arguments
    if not isinstance(packed, bytes):
        return False
    fields = _DECODER.decode(packing.unpack(packed)).fields
    if wanted is None:
        return any(spelled.lower() == name for spelled, _ in fields)
    return any(
        str(wanted) in folded(text(HeaderField(spelled, value, 0, 0)))
        for spelled, value in fields
        if spelled.lower() == name
    )
