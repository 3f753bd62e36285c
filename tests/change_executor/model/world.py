"""The real executor, and beside it a model that knows only what people decided: no move without a matching decision."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import event, select

from change_executor.agents import revoke_agent
from change_executor.apply import Apply
from change_executor.connections import Connections
from change_executor.errors import AnotherIsOpen, NoSuchProposal, VersionChanged
from change_executor.evidence.gather import Gather
from change_executor.intake.proposer_tokens import Proposer
from change_executor.intake.proposing import propose, withdraw
from change_executor.journal import schema
from change_executor.journal.file import journal_path
from change_executor.journal.group import GroupCommit
from change_executor.journal.journal import Journal, Proposal, is_stopped
from change_executor.lifecycle import TransitionRefused
from change_executor.reconcile import Reconcile
from change_executor.review.case import read_case
from change_executor.review.decisions import DecisionRefused, Desk, LookedAt, Settled
from change_executor.review.people import add_person
from change_executor.review.sessions import How, begin_session, find_session
from change_executor.switch import press_stop, release_stop
from change_executor.worker import Worker
from shared.identity import email_id
from shared.link import Copy, Located, OpenedState, WasOpened
from shared.problem import Problem
from shared.proposal import ProposalRequest, State
from tests.change_executor.breaking.rig import SILENT
from tests.change_executor.journal.clock import MovableClock, steady_by
from tests.change_executor.journal.empty import empty_journal
from tests.change_executor.model.memory_mail import UIDVALIDITY, Died, Fate, MemoryMail, MemoryMover, run_move
from tests.change_executor.moving.workshop import QUIET_SECONDS, settings_for
from tests.servers.desk import Rows, reading

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

ANN: Final = "ann"
MESSAGES: Final = {"one": b"Subject: one\r\n\r\n1\r\n", "two": b"Subject: two\r\n\r\n2\r\n"}
ROLES: Final = {"processed": "Processed", "escalate": "Escalate"}
# The other policy: the two roles have changed places.
OTHER_ROLES: Final = {"processed": "Escalate", "escalate": "Processed"}

FATES: Final = {
    "the worker works": Fate.ANSWERED,
    "the worker works and the answer is lost": Fate.ANSWER_LOST,
    "the worker works and the command is lost": Fate.COMMAND_LOST,
    "the worker works and the command is late": Fate.LATE,
    "the worker dies before a move": Fate.DIES_BEFORE,
    "the worker dies after a move": Fate.DIES_AFTER,
}

# Every act of the model by name; each may be tried in any state, and the executor refuses what may not be.
ACTS: Final = (
    "a proposes one",
    "b proposes two",
    "b proposes one elsewhere",
    "a withdraws",
    "ann approves the first",
    "ann approves the last",
    "ann approves what she saw at the beginning",
    "ann rejects the first",
    "ann takes the first back",
    "ann settles the first",
    "ann stops",
    "ann resumes",
    "ann revokes a",
    "the policy changes",
    "an hour passes",
    "six days pass",
    "another client moves one away",
    "another client moves one back",
    "another client moves two away",
    *FATES,
    "the sleeper wakes",
)


@dataclass(frozen=True)
class Permission:
    """What a person allowed: one move of this message from here to there, under this policy, until then."""

    proposal: str
    octets: bytes
    source: str
    uid: int | None
    target: str
    policy: bool | None
    until: datetime | None
    used: bool = False


@dataclass
class Snapshot:
    journal: bytes
    mail: MemoryMail
    now: datetime
    policy: bool
    permissions: list[Permission]
    seen: dict[str, LookedAt] = field(default_factory=dict)
    begun: dict[str, datetime] = field(default_factory=dict)


class World:
    """`do` lets one of ACTS happen; `check` raises AssertionError after a move that nobody allowed."""

    def __init__(self, folder: Path) -> None:
        self.clock = MovableClock()
        self.mail = MemoryMail()
        self.policy = False
        self.permissions: list[Permission] = []
        self._seen: dict[str, LookedAt] = {}
        self._unallowed: list[str] = []
        # A command that was sent before a stop, an expiry or a new policy may still run after it.
        self._sent_when_allowed: set[tuple[str, int, str]] = set()
        by_policy = {False: ROLES, True: OTHER_ROLES}
        self._settings = {
            policy: settings_for(
                folder, 143, "x", queue={"to": {role: {"mailbox": name} for role, name in roles.items()}}
            )
            for policy, roles in by_policy.items()
        }
        url = self._settings[False].journal.url
        self._path = journal_path(url)
        empty_journal(url, self.clock).close()
        self.journal = Journal(url, self.clock, steady_by(self.clock))
        # Durability is tried elsewhere; here thousands of states are.
        for engine in (self.journal._writer, self.journal._readers.engine):
            event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
        add_person(self.journal, ANN)
        Rows(self.journal, self.settings, self.clock).examined()  # type: ignore[arg-type]  # any clock will do
        for octets in MESSAGES.values():
            self.mail.put("Incoming", octets)
        # The twin that nobody may touch.
        self.mail.put("Incoming", MESSAGES["one"])

    @property
    def settings(self) -> object:
        return self._settings[self.policy]

    # One act.

    def do(self, act: str) -> None:
        who, _, rest = act.partition(" ")
        with suppress(
            Problem, TransitionRefused, DecisionRefused, VersionChanged, NoSuchProposal, AnotherIsOpen, LookupError
        ):
            match who:
                case "a" | "b":
                    self._agent(who, rest)
                case "ann":
                    self._ann(rest)
                case _:
                    self._other(act)

    def _agent(self, agent: str, what: str) -> None:
        proposer = Proposer(f"agent-{agent}", "support")
        settings = self._settings[self.policy]
        if what == "withdraws":
            mine = [each for each in self.proposals() if each.agent == proposer.agent]
            withdraw(self.journal, proposer, mine[-1].id)
            return
        octets = MESSAGES["two" if "two" in what else "one"]
        role = "escalate" if "elsewhere" in what else "processed"
        request = ProposalRequest(emailId=email_id(hashlib.sha256(octets).digest()), **{"from": "incoming", "to": role})
        propose(self.journal, settings, proposer, request, secrets.token_bytes)

    def _ann(self, what: str) -> None:
        match what:
            case "stops":
                press_stop(self.journal, "person:ann")
            case "resumes":
                release_stop(self.journal, "person:ann")
            case "revokes a":
                revoke_agent(self.journal, "agent-a", "person:ann")
            case "approves the first":
                self._approve(self._looked_at(self.proposals()[0].id))
            case "approves the last":
                self._approve(self._looked_at(self.proposals()[-1].id))
            case "approves what she saw at the beginning":
                self._approve(self._seen[self.proposals()[0].id])
            case "rejects the first":
                self._desk().reject(self._looked_at(self.proposals()[0].id), "")
            case "takes the first back":
                self._take_back(self.proposals()[0])
            case "settles the first":
                self._desk().settle(self._looked_at(self.proposals()[0].id), Settled.APPLIED)
            case _:
                raise AssertionError(what)

    def _other(self, act: str) -> None:
        if act in FATES:
            self._work(FATES[act])
            return
        match act:
            case "the policy changes":
                self.policy = not self.policy
            case "an hour passes":
                self._pass_by(hours=1)
            case "six days pass":
                self._pass_by(days=6)
            case "another client moves one away" | "another client moves two away":
                self._other_client(MESSAGES["two" if "two" in act else "one"], "Archive")
            case "another client moves one back":
                self._other_client(MESSAGES["one"], "Incoming")
            case "the sleeper wakes":
                self._wake_all()
            case _:
                raise AssertionError(act)

    def _pass_by(self, **step: float) -> None:
        # Longer than any command sleeps: that is what the quiet time is for.
        self._wake_all()
        self.clock.advance(**step)

    # What people allow, and what the mail server is asked to do.

    def _approve(self, looked_at: LookedAt) -> None:
        before = self._proposal(looked_at.proposal_id)
        self._desk().approve(looked_at)
        # What is allowed is what the case said, in the model's own words.
        octets = next(each for each in MESSAGES.values() if _id(each) == before.email_id)
        target = (OTHER_ROLES if self.policy else ROLES)[before.to_role]
        uid = min(uid for uid, _ in self._in_incoming_when_looked(before))
        self._allow(Permission(before.id, octets, "Incoming", uid, target, self.policy, before.expires_at))

    def _take_back(self, proposal: Proposal) -> None:
        self._desk().undo(self._looked_at(proposal.id))
        octets = next(each for each in MESSAGES.values() if _id(each) == proposal.email_id)
        there = next(each for each in reversed(self.permissions) if each.proposal == proposal.id and each.used)
        self._allow(Permission(proposal.id, octets, there.target, None, "Incoming", None, None))

    def _allow(self, permission: Permission) -> None:
        # A new decision takes the place of one that was never used.
        kept = [each for each in self.permissions if each.used or each.proposal != permission.proposal]
        self.permissions = [*kept, permission]

    def _judge(self, source: str, uid: int, octets: bytes, target: str) -> None:
        for position, each in enumerate(self.permissions):
            fits = (each.octets, each.source, each.target) == (octets, source, target) and not each.used
            if fits and each.uid in (None, uid) and self._still_allowed(each, (source, uid, target)):
                self.permissions[position] = replace(each, used=True)
                return
        # Not raised here: the worker lets no one proposal stop the others, whatever it raises.
        self._unallowed.append(f"a move without a decision: {source} {uid} to {target}")

    def _still_allowed(self, permission: Permission, command: tuple[str, int, str]) -> bool:
        if command in self._sent_when_allowed:
            return True
        proposal = self._proposal(permission.proposal)
        with self.journal.reading() as connection:
            stopped = is_stopped(connection)
        return (
            not stopped
            and proposal.state in (State.APPLYING, State.UNDOING)
            and permission.policy in (None, self.policy)
            and (permission.until is None or self.clock.now < permission.until)
        )

    def _in_incoming_when_looked(self, proposal: Proposal) -> list[tuple[int, datetime]]:
        table = schema.evidence.c
        with self.journal.reading() as connection:
            return [
                (row.uid, row.made_at)
                for row in connection.execute(select(table.uid, table.made_at).where(table.id == proposal.evidence))
            ]

    def _wake_all(self) -> None:
        sleeping, self.mail.sleeping = self.mail.sleeping, []
        for command in sleeping:
            self._sent_when_allowed.add(command)
            run_move(self.mail, self._judge, *command)

    def _other_client(self, octets: bytes, target: str) -> None:
        found = self.mail.find(octets)
        if found is not None and found[0] != target:
            del self.mail.mailboxes[found[0]][found[1]]
            self.mail.put(target, octets)

    # The executor.

    def _work(self, fate: Fate) -> None:
        self.mail.fate = fate
        settings, journal = self._settings[self.policy], self.journal
        mover = MemoryMover(lambda: self.mail, self._judge)
        worker = Worker(
            journal,
            settings,
            apply=Apply(journal, settings, mover),
            reconcile=Reconcile(journal, settings, mover.session, open_move=mover.session),
            gather=Gather(journal, settings, mover.session, self, lambda *_, **__: reading()),
            connections=Connections(),
            log=SILENT,
        )
        with suppress(Died):
            while worker.pass_once() == 0.0:
                pass
        self.mail.fate = Fate.ANSWERED

    def locate(self, account: str, email_id: str) -> Located:  # noqa: ARG002 - as the link
        copies = [
            Copy(uidvalidity=UIDVALIDITY["Incoming"], uid=uid)
            for uid, octets in self.mail.mailboxes["Incoming"].items()
            if _id(octets) == email_id
        ]
        return Located(copies=copies, fresh=True)

    def opened(self, agent: str, account: str, email_id: str) -> WasOpened:  # noqa: ARG002 - as the link
        return WasOpened(state=OpenedState.UNKNOWN, at=None)

    def _desk(self) -> Desk:
        with self.journal.writing() as writing:
            secret = begin_session(writing, ANN, How.PASSWORD, secrets.token_bytes)
        session = find_session(self.journal, secret)
        assert session is not None
        return Desk(self.journal, self._settings[self.policy], session)

    def _looked_at(self, proposal_id: str) -> LookedAt:
        with self.journal.reading() as connection:
            case = read_case(connection, self._settings[self.policy], proposal_id)
        looked_at = LookedAt(proposal_id, case.proposal.version, case.shown)
        self._seen.setdefault(proposal_id, looked_at)
        return looked_at

    def proposals(self) -> list[Proposal]:
        with self.journal.reading() as connection:
            rows = connection.execute(
                select(schema.proposals).order_by(schema.proposals.c.created_at, schema.proposals.c.agent)
            ).mappings()
            return [Proposal.from_row(row) for row in rows]

    def _proposal(self, proposal_id: str) -> Proposal:
        return next(each for each in self.proposals() if each.id == proposal_id)

    # What is always so.

    def check(self) -> None:
        """Every move was allowed, and nothing is lost or made: each message lies once, its twin too."""
        assert not self._unallowed, (self._unallowed, self.permissions)
        lying = sorted(octets for found in self.mail.mailboxes.values() for octets in found.values())
        assert sorted([*MESSAGES.values(), MESSAGES["one"]]) == lying

    def settle_down(self) -> Iterator[Proposal]:
        """Let what passes by itself pass; yields what is open afterwards."""
        release_stop(self.journal, "person:ann")
        for _ in range(3):
            self._wake_all()
            self.clock.advance(seconds=QUIET_SECONDS + 1)
            self._work(Fate.ANSWERED)
            self.check()
        yield from (each for each in self.proposals() if each.ended_at is None)

    # States to come back to.

    def save(self) -> Snapshot:
        self.journal.close()
        return Snapshot(
            self._path.read_bytes(),
            self.mail.copy(),
            self.clock.now,
            self.policy,
            list(self.permissions),
            dict(self._seen),
        )

    def restore(self, snapshot: Snapshot) -> None:
        self.journal.close()
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        self._path.write_bytes(snapshot.journal)
        self.journal._group = GroupCommit(self.journal._writer, self.journal._file.check)
        self.mail, self.clock.now, self.policy = snapshot.mail.copy(), snapshot.now, snapshot.policy
        self.permissions, self._seen = list(snapshot.permissions), dict(snapshot.seen)
        self._sent_when_allowed, self._unallowed = set(), []

    def key(self) -> tuple[object, ...]:
        """What tells two states apart; ids and versions do not."""
        with self.journal.reading() as connection:
            stopped = is_stopped(connection)
            revoked = tuple(connection.execute(select(schema.revoked_agents.c.name)).scalars())
        rows = tuple(
            (
                *(each.agent, each.email_id, each.to_role, each.state, each.waiting_code, each.outcome_code),
                *(each.evidence is not None, each.policy_version, each.decided_at, each.id in self._seen),
            )
            for each in self.proposals()
        )
        allowed = tuple((each.octets, each.target, each.policy, each.used) for each in self.permissions)
        return (rows, stopped, revoked, self.policy, self.clock.now, allowed, self.mail.key())


def _id(octets: bytes) -> str:
    return email_id(hashlib.sha256(octets).digest())
