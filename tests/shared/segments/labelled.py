"""The labelled messages of tests/golden/new_text: what each says, and what of it a person calls new."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "golden" / "new_text"


@dataclass(frozen=True, slots=True)
class Labelled:
    file: str
    name: str
    text: str | None
    html: str | None
    new: str
    keeps_more: str = ""


def labelled_messages() -> list[Labelled]:
    return [
        Labelled(
            path.stem,
            message["name"],
            message.get("text"),
            message.get("html"),
            message["new"],
            message.get("keeps_more", ""),
        )
        for path in sorted(FOLDER.glob("*.toml"))
        for message in tomllib.loads(path.read_text("utf-8"))["message"]
    ]


def telling_lines(text: str) -> list[str]:
    """Lines with text, runs of blanks as one: where a program leaves blanks and empty lines is not judged."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip("> \t")]
