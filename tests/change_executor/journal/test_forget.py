"""Content is forgotten some time after the end, and nothing else is."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select

from change_executor.audit import verify
from change_executor.journal import forget, schema
from change_executor.journal.forget import LINKS_KEPT_FOR, SESSIONS_KEPT_FOR, forget_texts, forget_ways_in
from change_executor.lifecycle import Event
from change_executor.review.links import LINK_MINUTES, new_link
from change_executor.review.people import add_person
from change_executor.review.sessions import ABSOLUTE_LIMIT, How, begin_session, known_browser
from tests.change_executor.journal.clock import MovableClock, new_proposal

if TYPE_CHECKING:
    import pytest

    from change_executor.journal.journal import Journal

THIRTY_DAYS = timedelta(days=30)
SECRET = "a reason that somebody wants forgotten"


def with_texts(journal: Journal, number: int, *events: Event) -> str:
    with journal.writing() as writing:
        made = writing.create(new_proposal(number))
        for kind in ("reason", "reading"):
            writing.keep_text(made.id, kind, SECRET)
        writing.connection.execute(insert(schema.threads).values(proposal=made.id, id_sha256="0" * 64))
        for event in events:
            writing.advance(made.id, event, "person:ada")
    return made.id


def kept(journal: Journal) -> set[str]:
    with journal.reading() as connection:
        found, tied = (
            set(connection.execute(select(table.c.proposal)).scalars()) for table in (schema.texts, schema.threads)
        )
    # What ties a message to others of its thread goes with what it said.
    assert found == tied
    return found


def test_texts_go_after_their_time_and_the_chain_stays_whole(journal: Journal, clock: MovableClock) -> None:
    ended = with_texts(journal, 1, Event.REJECT)
    still_open = with_texts(journal, 2)
    clock.advance(days=30, microseconds=-1)
    later = with_texts(journal, 3, Event.WITHDRAW)
    assert 0 == forget_texts(journal, THIRTY_DAYS)
    assert {ended, still_open, later} == kept(journal)
    clock.advance(microseconds=1)
    assert 1 == forget_texts(journal, THIRTY_DAYS)
    assert {still_open, later} == kept(journal)
    clock.advance(days=3650)
    assert 1 == forget_texts(journal, THIRTY_DAYS)
    assert {still_open} == kept(journal)
    with journal.reading() as connection:
        assert () == verify(connection).findings


def test_sessions_and_links_that_ended_long_ago_are_forgotten(journal: Journal, clock: MovableClock) -> None:
    assert ABSOLUTE_LIMIT < SESSIONS_KEPT_FOR
    assert timedelta(minutes=LINK_MINUTES) < LINKS_KEPT_FOR
    add_person(journal, "ada")
    with journal.writing() as writing:
        secret = begin_session(writing, "ada", How.PASSWORD, secrets.token_bytes)
    new_link(journal, "ada", secrets.token_bytes)
    clock.advance(days=7, minutes=LINK_MINUTES)
    assert 1 == forget_ways_in(journal)
    assert (1, 0) == rows_of_ways_in(journal)
    clock.advance(days=83)
    with journal.writing() as writing:
        begin_session(writing, "ada", How.PASSWORD, secrets.token_bytes)
    with journal.reading() as connection:
        assert None is not known_browser(connection, secret, "ada"), "an old session still tells the browser"
    new_link(journal, "ada", secrets.token_bytes)
    assert 1 == forget_ways_in(journal)
    assert (1, 1) == rows_of_ways_in(journal)
    assert 0 == forget_ways_in(journal)
    with journal.reading() as connection:
        assert () == verify(connection).findings


def rows_of_ways_in(journal: Journal) -> tuple[int, int]:
    with journal.reading() as connection:
        sessions, links = (
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (schema.sessions, schema.links)
        )
    return sessions, links


def test_what_is_undone_counts_from_its_second_end(journal: Journal, clock: MovableClock) -> None:
    mine = with_texts(journal, 1, Event.APPROVE, Event.CLAIM, Event.MOVED)
    clock.advance(days=29)
    with journal.writing() as writing:
        writing.advance(mine, Event.UNDO, "person:ada")
    clock.advance(days=29)
    assert 0 == forget_texts(journal, THIRTY_DAYS)
    with journal.writing() as writing:
        writing.advance(mine, Event.MOVED, "executor")
    clock.advance(days=29)
    assert 0 == forget_texts(journal, THIRTY_DAYS)
    clock.advance(days=1)
    assert 1 == forget_texts(journal, THIRTY_DAYS)


def test_a_long_backlog_goes_in_steps(journal: Journal, clock: MovableClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget, "_PROPOSALS_AT_ONCE", 2)
    for number in range(1, 6):
        with_texts(journal, number, Event.REJECT)
    clock.advance(days=31)
    assert 5 == forget_texts(journal, THIRTY_DAYS)
    assert set() == kept(journal)


def test_what_was_forgotten_is_not_in_the_file_any_more(journal: Journal, clock: MovableClock, url: str) -> None:
    with_texts(journal, 1, Event.REJECT)
    path = Path(url.removeprefix("sqlite:///"))
    clock.advance(days=31)
    forget_texts(journal, THIRTY_DAYS)
    journal.close()
    assert SECRET.encode() not in path.read_bytes()
