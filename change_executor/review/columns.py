"""Telling aligned tables from prose in plain text: a table keeps its lines whole and scrolls, prose wraps."""

import re
from typing import Final

# What aligns a column: two spaces or more, or a tab, between words.
_GAP: Final = re.compile(r"(?<=\S)(?: {2,}|[ ]*\t[ \t]*)(?=\S)")
# A rule between the rows of a table.
_RULE: Final = re.compile(r"[ \t]*[-=+|:_ ]{3,}[ \t]*")
_MIN_BARS: Final = 2
# Past this a line is no row of a table that anybody aligned.
_MAX_ROW_CHARACTERS: Final = 400


def blocks(text: str) -> list[tuple[bool, str]]:
    """Return the text in pieces, each with whether it is an aligned table; joined they are the text again."""
    lines = text.splitlines(keepends=True)
    in_table = [False] * len(lines)
    before, places_before = -1, set[tuple[str, int]]()
    for number, line in enumerate(lines):
        # A rule stands between rows, or after the last one, and is aligned with nothing.
        if _RULE.fullmatch(line.rstrip("\r\n")):
            in_table[number] = before >= 0 and in_table[before]
            continue
        places = _places(line)
        if places & places_before:
            in_table[before : number + 1] = [True] * (number + 1 - before)
        before, places_before = number, places
    pieces: list[tuple[bool, list[str]]] = []
    for line, is_table in zip(lines, in_table, strict=True):
        if not pieces or pieces[-1][0] != is_table:
            pieces.append((is_table, []))
        pieces[-1][1].append(line)
    return [(is_table, "".join(piece)) for is_table, piece in pieces]


def _places(line: str) -> set[tuple[str, int]]:
    """Where the columns of a line begin and end; lines that share a place are aligned with each other."""
    if len(line) > _MAX_ROW_CHARACTERS:
        return set()
    if line.count("|") >= _MIN_BARS:
        return {("bar", 0)}
    gaps = list(_GAP.finditer(line))
    if any("\t" in gap[0] for gap in gaps):
        return {("tab", 0)}
    return {("end", gap.start()) for gap in gaps} | {("begin", gap.end()) for gap in gaps}
