"""Content-Transfer-Encoding undone, whatever the sender did to it (RFC 2045 §6)."""

import binascii
import re
from typing import Final

_BASE64_ALPHABET: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
_NOT_BASE64: Final = bytes(octet for octet in range(256) if octet not in _BASE64_ALPHABET)

_BASE64_AND_BLANKS: Final = _BASE64_ALPHABET + b" \t\r\n"

_IDENTITY: Final = frozenset({"", "7bit", "8bit", "binary", "7-bit", "8-bit"})

KNOWN_ENCODINGS: Final = _IDENTITY | {"base64", "quoted-printable"}

_EQUALS_BEFORE_EQUALS: Final = re.compile(rb"=(?==)")
_BARE_CR_AFTER_EQUALS: Final = re.compile(rb"=\r(?!\n)")


def decode_transfer(octets: bytes, encoding: str) -> bytes | None:
    """Return the octets behind a transfer encoding, or None for an encoding that nobody knows (RFC 8621 §4.1.4)."""
    match encoding:
        case "base64":
            return decode_base64(octets)
        case "quoted-printable":
            return decode_quoted_printable(octets)
        case _:
            return octets if encoding in _IDENTITY else None


def decode_base64(octets: bytes) -> bytes:
    """Return what base64 holds: characters outside the alphabet are ignored, padding may lack or stand in the middle.

    RFC 2045 §6.8 lets padding be the end of the data: it is where something else than base64 follows, such as the
    footer that a mailing list put there.
    """
    padding = octets.find(b"=")
    if padding >= 0 and octets[padding:].translate(None, _BASE64_AND_BLANKS):
        octets = octets[:padding]
    symbols = octets.translate(None, _NOT_BASE64)
    unpadded = symbols.rstrip(b"=")
    if b"=" not in unpadded:
        return _decode_quanta(unpadded)
    # Encoded pieces put one after the other, each with its padding.
    return b"".join(map(_decode_quanta, unpadded.split(b"=")))


def _decode_quanta(symbols: bytes) -> bytes:
    leftover = len(symbols) % 4
    if leftover == 1:  # six bits make no octet
        symbols = symbols[:-1]
    return binascii.a2b_base64(symbols + b"=" * (-len(symbols) % 4))


def decode_quoted_printable(octets: bytes) -> bytes:
    """Return what quoted-printable holds; an `=` that begins no valid escape stays (RFC 2045 §6.7)."""
    pairs = octets.count(b"\r\n")
    blanks = (b" ", b"\t") if b"\t" in octets else (b" ",)
    if (
        octets.endswith(blanks)
        or any(blank + b"\r" in octets for blank in blanks)
        or (pairs != octets.count(b"\n") and any(blank + b"\n" in octets for blank in blanks))
    ):
        octets = _without_trailing_blanks(octets)
    if octets.count(b"\r") != pairs:
        # binascii would take everything up to the next LF for a soft line break.
        octets = _BARE_CR_AFTER_EQUALS.sub(b"=3D\r", octets)
    if b"==" in octets:
        # binascii would take the two for one, and what follows them for no escape.
        octets = _EQUALS_BEFORE_EQUALS.sub(b"=3D", octets)
    return binascii.a2b_qp(octets)


def _without_trailing_blanks(octets: bytes) -> bytes:
    """Blanks before a line's end were added on the way, RFC 2045 §6.7(3)."""
    lines = octets.split(b"\n")
    return b"\n".join(
        line[:-1].rstrip(b" \t") + b"\r" if line.endswith(b"\r") else line.rstrip(b" \t") for line in lines
    )
