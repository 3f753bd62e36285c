"""A start looks at every queue's mailboxes first, and says what is wrong with which and how to mend it."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from imapclient.exceptions import IMAPClientAbortError
from sqlalchemy import select

from change_executor.examine import Examination, _refuse_destinations_that_are_incoming, examine_queues, examined_before
from change_executor.journal import schema
from change_executor.policy import policy_version
from shared.imap_failure import protocol_failure
from shared.imap_login import ImapFailure, ImapLogin
from shared.settings import ConfigurationError
from tests.change_executor.moving.workshop import MAIL, Workshop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from change_executor.mover import MoveSession
    from tests.servers.dovecot import Dovecot


def _examine(workshop: Workshop) -> list[Examination]:
    return examine_queues(workshop.settings, workshop.mover.session, workshop.journal)


def _wrong(dovecot: Dovecot, folder: Path, **queue: Any) -> ConfigurationError:
    workshop = Workshop(dovecot, folder, queue=queue)
    try:
        with pytest.raises(ConfigurationError) as wrong:
            _examine(workshop)
    finally:
        workshop.close()
    assert "support" in wrong.value.where
    return wrong.value


def test_a_queue_that_is_right_is_recorded(workshop: Workshop) -> None:
    uid = workshop.deliver(MAIL, ("\\Flagged",))
    assert not examined_before(workshop.settings, workshop.journal)
    assert [Examination("support", _version(workshop), undo_permitted=True)] == _examine(workshop)
    assert examined_before(workshop.settings, workshop.journal)
    assert 1 == _recorded(workshop)
    # Nothing was changed by looking.
    message = workshop.dovecot.snapshot()["Incoming"].one()
    assert (uid, frozenset({"\\Flagged"})) == (message.uid, message.flags)


def test_narrow_rights_are_right_and_say_that_undo_is_not_permitted(narrow_workshop: Workshop) -> None:
    (examination,) = _examine(narrow_workshop)
    assert not examination.undo_permitted
    assert 0 == _recorded(narrow_workshop)


def test_a_queue_without_undo_asks_for_no_rights_on_incoming(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"undo": False})
    (examination,) = _examine(workshop)
    assert not examination.undo_permitted
    assert not [line for line in dovecot.commands("executor") if b'MYRIGHTS "Incoming"' in line]
    workshop.close()


def test_a_mailbox_that_is_not_there_is_named_with_its_mend(dovecot: Dovecot, tmp_path: Path) -> None:
    wrong = _wrong(dovecot, tmp_path, to={"processed": {"mailbox": "Missing"}})
    assert "`Missing`" in wrong.what
    assert "make it" in wrong.fix


def test_an_incoming_that_may_only_be_read_is_named_with_the_rights_it_needs(dovecot: Dovecot, tmp_path: Path) -> None:
    dovecot.passwords["executor"], kept = dovecot.passwords["reader"], dovecot.passwords["executor"]
    workshop = Workshop(dovecot, tmp_path)
    dovecot.passwords["executor"] = kept
    login = workshop.settings.credentials[0].model_copy(update={"user": "reader"})
    workshop.settings = workshop.settings.model_copy(update={"credentials": (login,)})
    with pytest.raises(ConfigurationError) as wrong:
        _examine(workshop)
    assert "`Incoming`" in wrong.value.what
    assert "lrte" in wrong.value.fix
    workshop.close()


@pytest.mark.parametrize(("mailbox", "trap"), [("Trash", "Trash"), ("Junk", "Junk")])
def test_a_destination_that_deletes_or_teaches_is_refused(
    dovecot: Dovecot, tmp_path: Path, mailbox: str, trap: str
) -> None:
    workshop = Workshop(dovecot, tmp_path, queue={"to": {"away": {"mailbox": mailbox}}})
    login = workshop.settings.credentials[0].model_copy(update={"user": "owner"})
    (tmp_path / "secret").write_text(dovecot.passwords["owner"])
    (tmp_path / "secret").chmod(0o600)
    workshop.settings = workshop.settings.model_copy(update={"credentials": (login,)})
    with pytest.raises(ConfigurationError) as wrong:
        _examine(workshop)
    assert f"the account's {trap}" in wrong.value.what
    workshop.close()


def test_a_destination_that_another_queue_watches_is_refused(dovecot: Dovecot, tmp_path: Path) -> None:
    workshop = Workshop(dovecot, tmp_path)
    queue = workshop.settings.queues[0]
    other = queue.model_copy(update={"id": "other", "incoming": "processed"})
    workshop.settings = workshop.settings.model_copy(update={"queues": (queue, other)})
    with pytest.raises(ConfigurationError) as wrong:
        _examine(workshop)
    assert "`Processed`" in wrong.value.what
    assert [] == dovecot.commands("executor")
    # The same name of another login is another mailbox; and two credentials may be of one login.
    login = workshop.settings.credentials[0]
    there = {"processed": queue.to["processed"].model_copy(update={"mailbox": queue.incoming})}
    elsewhere = other.model_copy(update={"credential": "another", "incoming": "Elsewhere", "to": there})
    for queues, user in product(((queue, elsewhere), (elsewhere, queue)), ("another", login.user)):
        credentials = (login, login.model_copy(update={"id": "another", "user": user}))
        both = workshop.settings.model_copy(update={"queues": queues, "credentials": credentials})
        with pytest.raises(ConfigurationError) if user == login.user else nullcontext():
            _refuse_destinations_that_are_incoming(both)
    workshop.close()


def test_a_connection_that_breaks_once_ends_no_first_start(workshop: Workshop) -> None:
    breaks = iter((True, False, True, True))

    @contextmanager
    def session(login: ImapLogin, mailboxes: frozenset[str]) -> Iterator[MoveSession]:
        with workshop.mover.session(login, mailboxes) as opened:
            yield opened
            if next(breaks):
                raise protocol_failure("the login `move`", IMAPClientAbortError("socket error: EOF"))

    assert ["support"] == [each.queue for each in examine_queues(workshop.settings, session, workshop.journal)]
    with pytest.raises(ImapFailure, match="EOF"):
        examine_queues(workshop.settings, session, workshop.journal)


def test_a_server_that_is_down_is_no_mistake_of_the_operators(workshop: Workshop) -> None:
    _examine(workshop)
    workshop.dovecot.stop()
    with pytest.raises(ImapFailure) as failure:
        _examine(workshop)
    assert failure.value.retryable
    assert examined_before(workshop.settings, workshop.journal)
    # Other settings were never looked at.
    queue = workshop.settings.queues[0].model_copy(update={"incoming": "INBOX"})
    other = workshop.settings.model_copy(update={"queues": (queue,)})
    assert not examined_before(other, workshop.journal)


def _version(workshop: Workshop) -> str:
    return policy_version(workshop.settings, workshop.settings.queues[0])


def _recorded(workshop: Workshop) -> int:
    with workshop.journal.reading() as connection:
        permitted: int = connection.execute(select(schema.examinations.c.undo_permitted)).scalar_one()
        return permitted
