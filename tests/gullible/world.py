"""Both houses as real processes in front of a real mail server whose incoming mailbox holds the hostile mails."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from agent_reader.relay.endpoint import Endpoint
from agent_reader.relay.proposals import ProposalTools
from agent_reader.relay.relay import Relay
from change_executor.evidence.reading import Readable
from tests.agent_reader.mcp.desk import outside
from tests.agent_reader.mcp.mails import CANARY
from tests.end_to_end.furnished import furnish_by_copy
from tests.end_to_end.houses import Houses, MailServer, eventually, houses_in
from tests.gullible.agent import GullibleAgent, Step
from tests.gullible.mails import hostile_mails
from tests.servers.dovecot import Dovecot
from tests.servers.snapshot import Snapshot

# As many as there are mails: what a person would have been asked by then is another test's.
_CAP: Final = (
    'incoming = "Incoming"\nmax_pending_per_agent = 5000\nmax_proposals_per_hour = 5000\nmax_proposals_per_day = 5000\n'
)

# Seconds. The executor looks at hundreds of proposals one by one; it has stalled where none is looked at for so long.
_STALLED_AFTER: Final = 120.0

UNREAD: Final = Readable.CANNOT_BE_SHOWN.value

# What of the journal an agent may bring about.
HARMLESS: Final = frozenset({"pending", "stale"})


@dataclass
class World:
    """The houses, the agent, and the mailbox as it was before the first step."""

    dovecot: Dovecot
    houses: Houses
    agent: GullibleAgent
    before: Snapshot

    def walk(self, count: int) -> list[Step]:
        """Let the agent go so many steps; no word of mail may stand outside the fence in any of them."""
        walked = []
        for _, step in zip(range(count), self.agent.steps(), strict=False):
            assert CANARY not in outside(step.text), step
            walked.append(step)
        return walked

    def warnings(self) -> dict[str, set[str]]:
        """The codes of the executor's warnings by proposal, once it has looked at every message.

        `UNREAD` where the reading process had no time for it, which the page says in the text's place.
        """
        found = self._warnings()
        while not self.agent.proposed.keys() <= found.keys():
            what = f"the executor to look at another proposal than {len(found)} of {len(self.agent.proposed)}"
            found = eventually(partial(self._more_warnings, len(found)), what, _STALLED_AFTER)
        return found

    def _more_warnings(self, than: int) -> dict[str, set[str]] | None:
        found = self._warnings()
        return found if len(found) > than else None

    def _warnings(self) -> dict[str, set[str]]:
        with self._journal() as journal:
            rows = journal.execute("SELECT proposal, text FROM texts WHERE kind = 'reading'").fetchall()
        found = {str(proposal): json.loads(text) for proposal, text in rows}
        return {
            proposal: {each["code"] for each in reading["warnings"]}
            | (set() if reading["readable"] == Readable.READABLE else {UNREAD})
            for proposal, reading in found.items()
        }

    def states(self) -> set[str]:
        """Every state that a proposal is in."""
        with self._journal() as journal:
            return {str(state) for (state,) in journal.execute("SELECT DISTINCT state FROM proposals")}

    def logs(self) -> str:
        return self.houses.reader.log + self.houses.executor.log

    @contextmanager
    def _journal(self) -> Iterator[sqlite3.Connection]:
        path = self.houses.executor.folder / "journal.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as journal:
            yield journal


@contextmanager
def world(folder: Path, seed: int) -> Iterator[World]:
    """A world in which the first sync is done and nothing has been proposed."""
    with Dovecot() as dovecot:
        mails = hostile_mails()
        dovecot.fill("Incoming", [mail.octets for mail in mails])
        server = MailServer(dovecot.port, dovecot.passwords["reader"], dovecot.passwords["executor"])
        with houses_in(folder, server) as houses:
            config = houses.executor.config
            config.write_text(config.read_text().replace('incoming = "Incoming"\n', _CAP))
            furnish_by_copy(houses)
            houses.reader.start()
            houses.executor.start()
            eventually(lambda: _count(houses) == len(mails), "the first sync")
            reader = Endpoint("reader", f"http://127.0.0.1:{houses.reader.port}", houses.reader_token)
            intake = Endpoint("executor", f"http://127.0.0.1:{houses.executor.port}", houses.proposer_token)
            relay = Relay(reader, ProposalTools(intake, random.Random(seed).randbytes, reader))
            agent = GullibleAgent(relay, random.Random(seed))
            yield World(dovecot, houses, agent, dovecot.snapshot())


def _count(houses: Houses) -> int:
    name, answer, _ = houses.jmap(["Email/query", {"accountId": "shop", "limit": 1, "calculateTotal": True}, "q"])[0]
    assert name == "Email/query"
    return int(answer["total"])
