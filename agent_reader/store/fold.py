"""The one way in which text becomes words, for the index and for questions alike.

Compatibility forms, letter case, accents and invisible characters are folded away; what is neither letter nor digit
parts words. Scripts written without spaces become one word for each character, so that any run of
them is found as a phrase. What comes out holds letters, digits, symbols such as emoji, and single spaces: nothing of
it can be syntax.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

# Marks tokens of ours (mailbox, keyword, attachment); it never comes out of `fold`, so no text can forge one.
TOKEN_MARK: Final = "\ue000"  # noqa: S105 - a search token, no secret

# What changes a letter's look and not, to most people who search, the letter: combining marks of Latin, Greek and
# Cyrillic, points of Hebrew and Arabic, the stroke that draws an Arabic word out; and what is not seen at all, with
# which a word can be hidden from a search.
_UNSEEN: Final = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\U000e0000-\U000e0fff]+"
)

# Unicode's Stream-Safe Text Format (UAX 15 §13): a run of other marks past 30 is no text of any script, and Python's
# normalisation takes quadratic time over it. A space every 30 characters bounds that and loses none.
_LONG_RUN: Final = re.compile(r"[^\w\s\x00-\x7f]{31,}")
_RUN_PIECE: Final = 30

# What normalisation would make letters and digits of, and join to the word or number beside it: the number sign of
# Cyrillic mail, trade marks, fractions (parted on both sides), and the raised endings of numbers (parted after).
_PARTED: Final = re.compile("([\u2116\u2120-\u2122\u213b\u00bc-\u00be\u2150-\u215f\u2189])|([\u00aa\u00ba])")

# Letters that normalisation leaves as they are, and that few who search have on their keyboard: with a stroke, or
# joined; the Arabic letters that Persian and Arabic keyboards spell apart; digits, from the zero of each script on.
_LETTERS: Final = {
    ord(letter): plain
    for letter, plain in (
        *zip("đðħıłøŧ", "ddhilot", strict=True),
        *(("æ", "ae"), ("œ", "oe"), ("þ", "th")),
        *zip("\u06a9\u06cc\u0649\u0629", "\u0643\u064a\u064a\u0647", strict=True),
    )
} | {
    ord(zero) + value: str(value)
    for zero in "\u0660\u06f0\u0966\u09e6\u0a66\u0ae6\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u1040\u17e0"
    for value in range(10)
}

_LETTER: Final = re.compile(f"[{''.join(map(chr, _LETTERS))}]")

# Symbols that people do search for; none that mail draws lines and lists with.
_EMOJI: Final = (
    "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25b6\u25c0\u2600-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f000-\U0001faff"
)

# Thai, Lao, Myanmar, Hangul letters, Khmer, kana and other letters of CJK, Han, Hangul syllables, the planes of Han;
# and the symbols that people do search for, emoji.
_UNSPACED: Final = re.compile(
    f"([{_EMOJI}\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff"
    "\u3100-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\U00020000-\U0003ffff])"
)
# Vowel signs of Indian scripts, Thai, Lao, Myanmar and Khmer are letters here: without them words become others.
_NOT_WORD: Final = re.compile(
    "[^\\w\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    f"\u17b4-\u17d3{_EMOJI}]+|[_\ue000]+"
)
# ASCII as words: letters in lower case, digits, and a blank for anything else.
_ASCII_WORDS: Final = bytes(ord(chr(each).lower()) if chr(each).isalnum() else 0x20 for each in range(0x80)) + bytes(
    0x80
)
# What is beyond ASCII in most mail: a few letters with marks, dashes, quotation marks, a currency.
_MOST_LETTERS: Final = 40
_ASCII: Final = bytes(range(0x80))


# A long text is folded piece by piece: every word is an object for a moment, and a text of 40 MB has millions.
_PIECE: Final = 64 * 1024


def fold(text: str) -> str:
    """Return the words of a text, folded, with one space between; empty where it has none."""
    if len(text) <= _PIECE:
        return _fold(text)
    return " ".join(filter(None, map(_fold, _pieces(text))))


def _pieces(text: str) -> Iterator[str]:
    """The text cut at white space, where it has any."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space if space > start else end
        yield text[start:end]
        start = end


def _fold(text: str) -> str:
    plain = text if text.isascii() else _with_plain_letters(text)
    if plain is not None:
        return b" ".join(plain.encode("ascii").translate(_ASCII_WORDS).split()).decode("ascii")
    return _fold_any(text)


def _with_plain_letters(text: str) -> str | None:
    """A text with what each letter beyond ASCII is folded to, where that is ASCII for all of them; a tenth the time."""
    # A text may hold half a surrogate pair.
    beyond = set(text.encode(errors="surrogatepass").translate(None, _ASCII).decode(errors="surrogatepass"))
    if len(beyond) > _MOST_LETTERS:
        return None
    for letter in beyond:
        plain = _plain_letter(letter)
        if plain is None:
            return None
        text = text.replace(letter, plain)
    return text


@lru_cache(maxsize=4096)
def _plain_letter(letter: str) -> str | None:
    """What a letter is folded to wherever it stands; None where that is not ASCII, or the letters around matter."""
    decomposed = unicodedata.normalize("NFKD", letter)
    if unicodedata.combining(letter) or unicodedata.combining(decomposed[0]):
        return None
    plain = _fold_any(f"a{letter}a")[1:-1]
    # A long run of symbols that become letters (TM, No) is parted somewhere; one letter does not know where it stands.
    is_symbol_as_letters = plain.strip() and not letter.isalnum()
    return plain if plain.isascii() and not is_symbol_as_letters else None


def _fold_any(text: str) -> str:
    text = _LONG_RUN.sub(_in_pieces, _UNSEEN.sub("", text))
    text = _PARTED.sub(_parted, text)
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFC", _UNSEEN.sub("", unicodedata.normalize("NFD", text)))
    # Few letters are one of them, and to look for those costs less than to ask a table for each.
    text = _LETTER.sub(_plain_of, text)
    return " ".join(_UNSPACED.sub(r" \1 ", _NOT_WORD.sub(" ", text)).split())


def _parted(symbol: re.Match[str]) -> str:
    return f" {symbol[1]} " if symbol[1] else f"{symbol[2]} "


def _plain_of(letter: re.Match[str]) -> str:
    return _LETTERS[ord(letter[0])]


def sort_order(text: str) -> str:
    """Return a text such that plain comparison sorts as people do: letter case and marks aside."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = _LONG_RUN.sub(_in_pieces, _UNSEEN.sub("", text))
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(_UNSEEN.sub("", unicodedata.normalize("NFD", text)).split())


def _in_pieces(run: re.Match[str]) -> str:
    marks = run[0]
    return " ".join(marks[start : start + _RUN_PIECE] for start in range(0, len(marks), _RUN_PIECE))
