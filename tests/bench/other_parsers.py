"""The same work by other parsers: `email` with both policies, and `mail-parser` and `fast-mail-parser` where they are.

Run as a script (`INTERPRETER other_parsers.py SECONDS < MESSAGE`) it prints the rates of the two that only another
interpreter has installed; so it imports nothing but the standard library.
"""

import email
import email.policy
import hashlib
import importlib
import sys
import time
from collections.abc import Callable
from email.header import decode_header, make_header
from email.utils import getaddresses, parsedate_to_datetime
from importlib.metadata import version
from typing import Any, Final, TypeAlias

Parser: TypeAlias = Callable[[bytes], int]

_POLICIES: Final[dict[str, Any]] = {"default": email.policy.default, "compat32": email.policy.compat32}
_ADDRESS_FIELDS: Final = ("from", "sender", "reply-to", "to", "cc", "bcc")
_WORD_FIELDS: Final = ("subject", "message-id", "in-reply-to", "references", "list-unsubscribe")

# The machine does other things too: of several rounds the best is nearest to what the code costs, and who is compared
# takes turns.
_ROUNDS: Final = 6


def best_rates(parsers: dict[str, Parser], octets: bytes, seconds: float) -> dict[str, float]:
    """Return how many messages a second of its own time each reads on one core, in `seconds` for each."""
    best = dict.fromkeys(parsers, 0.0)
    for _ in range(_ROUNDS):
        for name, parser in parsers.items():
            best[name] = max(best[name], _rate(parser, octets, seconds / _ROUNDS))
    return best


def _rate(parser: Parser, octets: bytes, seconds: float) -> float:
    parser(octets)
    count, begun = 0, time.process_time()
    while (spent := time.process_time() - begun) < seconds:
        for _ in range(10):
            parser(octets)
        count += 10
    return count / spent


def library_text(policy: str) -> Parser:
    """Return what gives the decoded texts by `email`."""

    def read(octets: bytes) -> int:
        message: Any = email.message_from_bytes(octets, policy=_POLICIES[policy])
        texts = (part for part in message.walk() if part.get_content_type() in {"text/plain", "text/html"})
        return sum(len(_text(part)) for part in texts)

    return read


def _text(part: Any) -> str:
    if hasattr(part, "get_content"):
        return str(part.get_content())
    octets: bytes = part.get_payload(decode=True)
    return octets.decode(part.get_content_charset("utf-8"), "replace")


def library_whole(policy: str, *, every_field: bool) -> Parser:
    """Return what gives of Email/get all that `email` has a way to.

    Every header field raw; subject, addresses, groups, date and ids parsed, or every field decoded; of each part
    headers, type, name, size, digest and the rest of an EmailBodyPart; the texts; which part is body, which attached;
    the digest of the message and a preview.
    """
    headers = _parsed_headers if policy == "default" else _legacy_headers

    def read(octets: bytes) -> int:
        message: Any = email.message_from_bytes(octets, policy=_POLICIES[policy])
        found = headers(message)
        if every_field:
            found += _others(message, policy)
        parts = [_part(part) for part in message.walk()]
        if policy == "default":  # what it has for textBody, htmlBody and attachments
            found += [message.get_body(("plain",)), message.get_body(("html",)), list(message.iter_attachments())]
        plain = next((text for kind, text in parts if kind == "text/plain"), "")
        preview = " ".join(plain.split())[:256]
        return len(found) + len(parts) + len(preview) + len(hashlib.sha256(octets).hexdigest())

    return read


def _others(message: Any, policy: str) -> list[Any]:
    """The fields that were not parsed yet and may be read as text (RFC 8621 §4.1.2.2), decoded."""
    known = {*_ADDRESS_FIELDS, *_WORD_FIELDS, "date", "received", "return-path"}
    fetched = [
        _POLICIES[policy].header_fetch_parse(name, value)
        for name, value in message.raw_items()
        if name.lower() not in known
    ]
    return [str(value if policy == "default" else make_header(decode_header(value))) for value in fetched]


def _parsed_headers(message: Any) -> list[Any]:
    # Reading a field parses it anew each time, so each is read once; the rest stays raw, as it does with us.
    found: list[Any] = list(message.raw_items())
    for name in _ADDRESS_FIELDS:
        value = message[name]
        if value is not None:
            found += [(group.display_name, len(group.addresses)) for group in value.groups]
            found += [(address.display_name, address.addr_spec) for address in value.addresses]
    found.append(message["date"].datetime.isoformat())
    found += [str(message[name]).split() for name in _WORD_FIELDS]
    return found


def _legacy_headers(message: Any) -> list[Any]:
    found: list[Any] = list(message.raw_items())
    for name in _ADDRESS_FIELDS:
        values = message.get_all(name)
        if values is not None:
            found += [(str(make_header(decode_header(display))), spec) for display, spec in getaddresses(values)]
    found.append(parsedate_to_datetime(message["date"]).isoformat())
    found += [str(make_header(decode_header(message[name]))).split() for name in _WORD_FIELDS]
    return found


def _part(part: Any) -> tuple[str, str]:
    kind: str = part.get_content_type()
    facts = list(part.raw_items())
    if part.is_multipart():
        return kind, ""
    octets: bytes = part.get_payload(decode=True)
    facts += [(name, str(part[name] or "")) for name in ("content-id", "content-language", "content-location")]
    facts += [
        (kind, part.get_content_charset() or ""),
        (part.get_content_disposition() or "", part.get_filename() or ""),
        (str(len(octets)), hashlib.sha256(octets).hexdigest()),
    ]
    return kind, _text(part) if kind.startswith("text/") else ""


def mail_parser() -> Parser:
    """Return what reads with `mail-parser` all that it has."""
    library = importlib.import_module("mailparser")

    def read(octets: bytes) -> int:
        message = library.parse_from_bytes(octets)
        parsed = (message.subject, message.from_, message.to, message.cc, message.date, message.message_id)
        return len(parsed) + len(message.headers) + len(message.text_plain) + len(message.attachments)

    return read


def fast_mail_parser() -> Parser:
    """Return what reads with `fast-mail-parser` all that it has; it parses no addresses, dates or ids."""
    library = importlib.import_module("fast_mail_parser")

    def read(octets: bytes) -> int:
        message = library.parse_email(octets)
        parsed = (message.subject, message.date)
        return len(parsed) + len(message.headers) + len(message.text_plain) + len(message.attachments)

    return read


def main() -> None:
    """Print name and rate of each."""
    octets, seconds = sys.stdin.buffer.read(), float(sys.argv[1])
    parsers = {"mail-parser": mail_parser(), "fast-mail-parser": fast_mail_parser()}
    for name, best in best_rates(parsers, octets, seconds).items():
        sys.stdout.write(f"{name} {version(name)} {best:.1f}\n")


if __name__ == "__main__":
    main()
