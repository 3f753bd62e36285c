"""Encoded-words undone, and header text made whole (RFC 2047, RFC 8621 §4.1.2.2)."""

import re
import unicodedata
from typing import Final

from shared.message.charset import codec_of, decode
from shared.message.limits import MAX_ENCODED_WORDS
from shared.message.transfer import decode_base64

# RFC 2047 §2. Every run is possessive and every class excludes what ends it: one pass, whatever stands there.
ENCODED_WORD: Final = re.compile(r"=\?([!#-'+\-0-9A-Z\\^-~*]++)\?([BbQq])\?([!->@-~]*+)\?=")

_HEX_PAIR: Final = re.compile(rb"=([0-9A-Fa-f]{2})")

_CONTROLS: Final = dict.fromkeys((*range(32), *range(127, 160)))

# Unicode's Stream-Safe Text Format (UAX 15 §13): no text that people write has more marks in a row, and Python's
# normalisation takes quadratic time over longer runs (1.2 s for 40,000).
_MAX_MARKS: Final = 30

# Below this even the worst run costs nothing that could be noticed.
_ALWAYS_NORMALISED: Final = 256


def decode_words(text: str) -> str:
    """Return unfolded header text with its encoded-words decoded where RFC 2047 §5 allows them to stand.

    Adjacent words of one charset are joined before charset decoding, so that a character split over two comes out
    whole. A word inside another word, or of an unknown charset, stays as it is.
    """
    if "=?" not in text:
        return text
    pieces: list[str] = []
    position = searched = found = 0
    while found < MAX_ENCODED_WORDS:
        start = text.find("=?", searched)
        if start < 0:
            break
        word = ENCODED_WORD.match(text, start)
        if word is None or not _begins_a_word(text, start) or codec_of(_charset(word)) is None:
            searched = start + 2
            continue
        run, end = _run_of_words(text, word)
        if not _ends_a_word(text, end):
            searched = end
            continue
        found += len(run)
        pieces += (text[position:start], _decode_run(run))
        position = searched = end
    pieces.append(text[position:])
    return "".join(pieces)


def _begins_a_word(text: str, start: int) -> bool:
    return start == 0 or text[start - 1] in " \t\r\n"


def _ends_a_word(text: str, end: int) -> bool:
    return end == len(text) or text[end] in " \t\r\n"


def _charset(word: re.Match[str]) -> str:
    return word[1].partition("*")[0]  # RFC 2231 §5: a language may follow


def _run_of_words(text: str, first: re.Match[str]) -> tuple[list[re.Match[str]], int]:
    """Words with nothing but white space between them; the white space goes (RFC 2047 §6.2)."""
    run, end = [first], first.end()
    while len(run) < MAX_ENCODED_WORDS:
        start = end
        while start < len(text) and text[start] in " \t\r\n":
            start += 1
        following = ENCODED_WORD.match(text, start) if start > end else None
        if following is None or codec_of(_charset(following)) is None or not _ends_a_word(text, following.end()):
            break
        run.append(following)
        end = following.end()
    return run, end


def _decode_run(run: list[re.Match[str]]) -> str:
    texts: list[str] = []
    octets: list[bytes] = []
    charset = _charset(run[0])
    for word in run:
        if _charset(word).lower() != charset.lower():
            texts.append(decode(b"".join(octets), charset, guesses=False).text)
            octets, charset = [], _charset(word)
        octets.append(_word_octets(word))
    texts.append(decode(b"".join(octets), charset, guesses=False).text)
    return "".join(texts).translate(_CONTROLS)


def _word_octets(word: re.Match[str]) -> bytes:
    encoded = word[3].encode("ascii")
    if word[2] in "Bb":
        return decode_base64(encoded)
    return _HEX_PAIR.sub(lambda pair: bytes.fromhex(pair[1].decode("ascii")), encoded.replace(b"_", b" "))


def nfc(text: str) -> str:
    """Return the text in Unicode's NFC, or unchanged where it stacks more marks than any script does."""
    if text.isascii():
        return text
    if len(text) > _ALWAYS_NORMALISED and _stacks_marks(text):
        return text
    return unicodedata.normalize("NFC", text)


def _stacks_marks(text: str) -> bool:
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > _MAX_MARKS:
            return True
    return False
