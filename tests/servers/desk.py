"""A review page with believable rows behind it, written as intake, evidence and the worker write them."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from argon2 import PasswordHasher
from sqlalchemy import insert

from change_executor.config import ExecutorSettings
from change_executor.evidence.reading import Readable, Reading, TextSource
from change_executor.journal import evidence as evidence_rows
from change_executor.journal import schema
from change_executor.journal.evidence import Evidence
from change_executor.journal.journal import NewProposal
from change_executor.journal.surroundings import keep_thread, sender_digest
from change_executor.lifecycle import Event
from change_executor.policy import policy_version
from change_executor.review.app import make_app
from change_executor.review.links import new_link
from change_executor.review.passwords import Passwords
from change_executor.review.people import Role, add_person, password_hash, store_password
from tests.change_executor.journal.empty import empty_journal
from tests.servers.page import Served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from change_executor.journal.journal import Journal, Proposal

PERSON = "rosa"
PASSWORD = "a short sentence is easy"
# Parameters that cost a test microseconds; the page's own are argon2's defaults.
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


class Clock:
    """Time that passes when the test says so."""

    def __init__(self, now: datetime | None = None) -> None:
        self.now = now or datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **step: float) -> None:
        self.now += timedelta(**step)


def journal_for(settings: ExecutorSettings, clock: Clock) -> Journal:
    """A journal of one's own where the settings say."""
    return empty_journal(settings.journal.url, clock)


def settings_for(
    tmp_path: Path, port: int = 8622, *, further_queue: dict[str, Any] | None = None, **queue: Any
) -> ExecutorSettings:
    return ExecutorSettings.model_validate(
        {
            "review": {"listen": f"localhost:{port}", "allow_uids": [0]},
            "journal": {"url": f"sqlite:///{tmp_path / 'journal.db'}"},
            "reader": {"socket": str(tmp_path / "r.sock")},
            "credentials": [{"id": "shop", "host": "127.0.0.1", "user": "executor", "secret_file": "/dev/null"}],
            "queues": [
                {
                    "id": "support",
                    "credential": "shop",
                    "account": "shop",
                    "incoming": "INBOX",
                    "to": {
                        "processed": {"mailbox": "Support/Processed"},
                        "escalate": {"mailbox": "Support/Für die Chefin"},
                    },
                }
                | queue
            ]
            + ([] if further_queue is None else [{"credential": "shop", "account": "shop"} | further_queue]),
        }
    )


def reading(subject: str = "Order 4711 arrived", text: str = "Everything arrived, thank you!", **more: Any) -> Reading:
    return Reading.model_validate(
        {
            "readable": Readable.READABLE,
            "subject": subject,
            "sender": ["Ada Example <ada@example.org>"],
            "recipients": ["Support <support@shop.example>"],
            "date": "2026-11-28T09:14:00+01:00",
            "text": text,
            "text_source": TextSource.PLAIN,
        }
        | more
    )


@dataclass
class Rows:
    """Writes what intake, evidence and the worker write."""

    journal: Journal
    settings: ExecutorSettings
    clock: Clock
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    def person(self, name: str = PERSON, role: Role | None = None) -> str:
        """A person with a password, and a link for them; the first one is an administrator."""
        add_person(self.journal, name, role)
        with self.journal.writing() as writing:
            store_password(writing, name, CHEAP.hash(PASSWORD))
        return self.link(name)

    def link(self, name: str = PERSON) -> str:
        return new_link(self.journal, name, secrets.token_bytes)

    def proposal(
        self,
        seen: Reading | None = None,
        reason: str | None = None,
        *,
        to_role: str = "processed",
        agent: str = "mailbot",
        copies: int = 1,
        hints: str | None = None,
        days: float = 5,
        email_id: str | None = None,
        queue: str = "support",
        source: bytes | None = None,
    ) -> Proposal:
        """A proposal; with a reading, also the evidence for it."""
        number = next(self._numbers)
        new = NewProposal(
            id=f"P{number:020d}",
            agent=agent,
            queue=queue,
            email_id=email_id or f"M{number:032d}",
            from_role="incoming",
            to_role=to_role,
            expires_at=self.clock() + timedelta(days=days),
            predecessor=None,
        )
        with self.journal.writing() as writing:
            proposal = writing.create(new)
            if reason is not None:
                evidence_rows.keep_text(writing, new.id, "reason", reason)
            if hints is not None:
                evidence_rows.keep_text(writing, new.id, "hints", hints)
        return proposal if seen is None else self.look(new.id, seen, copies, source=source)

    def look(
        self, proposal_id: str, seen: Reading, copies: int = 1, uid: int = 7, source: bytes | None = None
    ) -> Proposal:
        """Evidence, as the executor writes it after it has looked."""
        with self.journal.writing() as writing:
            email_id = writing.proposal(proposal_id).email_id
            kept = None if source is None else evidence_rows.keep_source(writing, proposal_id, source)
            evidence_rows.keep_text(writing, proposal_id, "reading", seen.canonical().decode())
            keep_thread(writing, proposal_id, seen.thread)
            return evidence_rows.record(
                writing,
                Evidence(
                    proposal=proposal_id,
                    uidvalidity=1764000000,
                    uid=uid,
                    octets_sha256=hashlib.sha256(f"{email_id} {uid}".encode()).hexdigest(),
                    size=4321,
                    internaldate="2026-11-28T09:14:02+01:00",
                    copies=copies,
                    reading_version=seen.reading_version,
                    reading_sha256=seen.sha256(),
                    sender_sha256=sender_digest(seen.sender[0]) if seen.sender else None,
                ),
                kept,
            )

    def wait(self, proposal_id: str, code: str) -> None:
        with self.journal.writing() as writing:
            writing.change(proposal_id, "wait", "executor", waiting_code=code, waiting_since=writing.now)

    def happen(self, proposal_id: str, *events: Event, **values: Any) -> Proposal:
        """Let events happen; `values` are columns that change with the last one."""
        with self.journal.writing() as writing:
            for event in events[:-1]:
                writing.advance(proposal_id, event, "executor")
            return writing.advance(proposal_id, events[-1], "executor", **values)

    def approve(self, proposal_id: str) -> None:
        self.happen(proposal_id, Event.APPROVE, decided_by=PERSON, decided_at=self.clock())

    def moved(self, proposal_id: str) -> Proposal:
        """From pending to applied, with the intent that says where the message lies now."""
        self.approve(proposal_id)
        return self.carry_out(proposal_id)

    def carry_out(self, proposal_id: str) -> Proposal:
        """What the worker writes about an approved proposal, with a mail server that did what it was asked."""
        with self.journal.writing() as writing:
            writing.connection.execute(
                insert(schema.moves).values(
                    proposal=proposal_id,
                    kind="move",
                    credential="shop",
                    source_mailbox="INBOX",
                    source_uidvalidity=1764000000,
                    source_uid=7,
                    target_mailbox="Support/Processed",
                    target_uidvalidity=1764000001,
                    target_uidnext=12,
                    octets_sha256="0" * 64,
                    size=4321,
                    internaldate="2026-11-28T09:14:02+01:00",
                    started_at=writing.now,
                    concluded_at=writing.now,
                    conclusion="moved",
                    new_uid=12,
                )
            )
        return self.happen(
            proposal_id, Event.CLAIM, Event.MOVED, outcome_code="moved", outcome_at=self.clock(), copies_left=0
        )

    def examined(self, *, undo_permitted: bool = True) -> None:
        queue = self.settings.queues[0]
        with self.journal.writing() as writing:
            writing.connection.execute(
                insert(schema.examinations).values(
                    queue=queue.id,
                    policy_version=policy_version(self.settings, queue),
                    examined_at=writing.now,
                    undo_permitted=int(undo_permitted),
                )
            )
            writing.append("queue:examine", queue.id, "executor")


def fields_of(page: str, action: str) -> dict[str, str]:
    """The hidden fields of a page's form, as a browser without scripts would send them."""
    form = re.search(rf'<form[^>]*action="{re.escape(action)}"[^>]*>(.*?)</form>', page, re.DOTALL)
    assert form, f"no form for {action}"
    tags = [tag for tag in re.findall(r"<input[^>]*>", form[1]) if 'type="hidden"' in tag]
    return {_attribute(tag, "name"): _attribute(tag, "value") for tag in tags}


def press(client: httpx.Client, page: str, action: str, **fields: str) -> httpx.Response:
    """Send a page's form with further fields."""
    return client.post(action, data=fields_of(page, action) | fields)


def _attribute(tag: str, name: str) -> str:
    match = re.search(rf'\b{name}="([^"]*)"', tag)
    return unescape(match[1]) if match else ""


class ReviewPage:
    """A running review page with its journal, and clients that speak to it as a browser of its own origin would."""

    def __init__(
        self,
        folder: Path,
        *,
        further_queue: dict[str, Any] | None = None,
        clock: Clock | None = None,
        **options: Any,
    ) -> None:
        self.clock = clock or Clock()
        self.served = Served()
        self.settings = settings_for(folder, self.served.port, further_queue=further_queue)
        self.journal = journal_for(self.settings, self.clock)
        self.rows = Rows(self.journal, self.settings, self.clock)
        self._clients: list[httpx.Client] = []
        defaults: dict[str, Any] = {
            "clock": self.clock,
            "random_octets": secrets.token_bytes,
            "separated": True,
            "passwords": Passwords(CHEAP),
        }
        self.app = make_app(self.settings, self.journal, **defaults | options)
        self.served.serve(self.app)

    @property
    def url(self) -> str:
        return self.served.url

    def client(self, **headers: str) -> httpx.Client:
        """A client without a session; `headers` replace those of a browser."""
        client = httpx.Client(
            base_url=self.url,
            headers={"Origin": self.url, "Sec-Fetch-Site": "same-origin"} | headers,
            timeout=30,
            trust_env=False,
            # plain http; loading the roots would take a tenth of a second for each client
            verify=False,
        )
        self._clients.append(client)
        return client

    def signed_in(self, name: str = PERSON) -> httpx.Client:
        """A client of a person who is signed in: by the password, or by a link where there is none."""
        client = self.client()
        if password_hash(self.journal, name) is None:
            answer = client.post("/link", data={"secret": self.rows.link(name)})
        else:
            answer = client.post("/sign-in", data={"name": name, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.served.close()
        self.journal.close()
