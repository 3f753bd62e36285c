"""Houses that begin with their tokens and their person: the commands make those once, and each test gets a copy.

What the commands do is shown where they are run: by `furnish` itself, under three users, and in the tests of each.
"""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agent_reader.store import database
from tests.end_to_end.houses import Houses, MailServer, furnish, houses_in


@dataclass(frozen=True)
class Furniture:
    """The files that the commands left, by their places in the two houses' folders, and the tokens in them."""

    files: dict[str, bytes]
    reader_token: str
    proposer_token: str


def furnish_by_copy(houses: Houses) -> None:
    """What `furnish` makes, without its three processes; the reader's index has its tables already, and is empty."""
    made = _made_once()
    houses.reader_token, houses.proposer_token = made.reader_token, made.proposer_token
    for name, octets in made.files.items():
        path = houses.reader.folder.parent / name
        path.touch(mode=0o600)
        path.write_bytes(octets)


@cache
def _made_once() -> Furniture:
    with tempfile.TemporaryDirectory() as name, houses_in(Path(name), MailServer(1, "-", "-")) as houses:
        furnish(houses)
        index = houses.reader.folder / "index"
        path = database.account_file(index, "shop")
        path.touch(mode=0o600)
        database._migrate(path)
        left = [*index.iterdir(), *houses.executor.folder.glob("journal.db*")]
        files = {str(path.relative_to(name)): path.read_bytes() for path in left if path.is_file()}
        return Furniture(files, houses.reader_token, houses.proposer_token)
