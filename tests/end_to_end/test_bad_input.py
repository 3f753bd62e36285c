"""What a person meets who gets something wrong: the thing is named, the mend is said, and the exit status is 2."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.houses import House, Houses
from tests.servers.dovecot import Dovecot
from tests.servers.ports import free_port

# What is wrong: (words replaced in the configuration, their replacement, words that must be said)
READER_MISTAKES = {
    "host": ('host = "127.0.0.1"\nport = PORT\ntls = "none"', 'host = "mail.invalid"', ["mail.invalid", "host"]),
    "tls": ('host = "127.0.0.1"', 'host = "mail.invalid"', ["tls", "loopback"]),
    "port": ("port = PORT", "port = FREE", ["127.0.0.1:FREE"]),
    "mailbox": ("sync_seconds = 1", 'sync_seconds = 1\nmailboxes = ["Incomming"]', ["Incomming"]),
    "key": ("sync_seconds", "sync_secnods", ["sync_secnods", "house.toml"]),
    "secret": ("reader/secret", "reader/no-secret", ["no-secret"]),
    "listen": ("listen = ", 'listen = "0.0.0.0:1"\n#', ["listen"]),
}
EXECUTOR_MISTAKES = {
    "host": ('host = "127.0.0.1"\nport = PORT\ntls = "none"', 'host = "mail.invalid"', ["mail.invalid", "host"]),
    "tls": ('host = "127.0.0.1"', 'host = "mail.invalid"', ["tls", "loopback"]),
    "port": ("port = PORT", "port = FREE", ["127.0.0.1:FREE"]),
    "incoming": ('incoming = "Incoming"', 'incoming = "Incomming"', ["Incomming", "support"]),
    "destination": ('mailbox = "Processed"', 'mailbox = "Procesed"', ["Procesed"]),
    "trash": ('mailbox = "Processed"', 'mailbox = "Trash"', ["Trash"]),
    "same": ('mailbox = "Processed"', 'mailbox = "escalate"', ["same mailbox"]),
    "key": ("quiet_seconds", "quite_seconds", ["quite_seconds", "house.toml"]),
    "secret": ("executor/secret", "executor/no-secret", ["no-secret"]),
    "listen": ("listen = ", 'listen = "0.0.0.0:1"\n#', ["listen"]),
}


def _refused(house: House, port: int, mistake: tuple[str, str, list[str]]) -> str:
    right, wrong, said = mistake
    free = str(free_port())
    text = house.config.read_text()
    right = right.replace("PORT", str(port))
    assert right in text
    house.config.write_text(text.replace(right, wrong.replace("FREE", free)))
    done = house.run("serve")
    assert 2 == done.returncode, done.stderr
    for words in said:
        assert words.replace("FREE", free) in done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("what", READER_MISTAKES)
def test_g10_a_mistake_in_the_readers_configuration_is_named(dovecot: Dovecot, houses: Houses, what: str) -> None:
    _refused(houses.reader, dovecot.port, READER_MISTAKES[what])


@pytest.mark.parametrize("what", EXECUTOR_MISTAKES)
def test_g10_a_mistake_in_the_executors_configuration_is_named(dovecot: Dovecot, houses: Houses, what: str) -> None:
    _refused(houses.executor, dovecot.port, EXECUTOR_MISTAKES[what])


@pytest.mark.parametrize("name", ["reader", "executor"])
def test_g10_a_wrong_password_and_an_untrusted_certificate_are_named_and_not_repeated(
    dovecot: Dovecot, houses: Houses, name: str
) -> None:
    house: House = getattr(houses, name)
    secret = house.folder / "secret"
    right = secret.read_text()
    _write(secret, "not-the-password")
    done = house.run("serve")
    assert (2, True) == (done.returncode, "refused the login" in done.stderr), done.stderr
    assert "not-the-password" not in done.stderr
    _write(secret, right)
    config = house.config.read_text()
    house.config.write_text(
        config.replace('tls = "none"', 'tls = "tls"').replace(f"port = {dovecot.port}", f"port = {dovecot.tls_port}")
    )
    done = house.run("serve")
    assert (2, True) == (done.returncode, "certificate" in done.stderr), done.stderr
    # with the authority named, the same server is trusted
    house.config.write_text(
        house.config.read_text().replace('tls = "tls"', f'tls = "tls"\nca_file = "{dovecot.ca_file}"')
    )
    house.start()
    assert 0 == house.stop()


def _write(path: Path, text: str) -> None:
    path.chmod(0o600)
    path.write_text(text)


RIGHT: dict[str, Any] = {"emailId": "M" + "0" * 32, "from": "incoming", "to": "processed"}


def test_g10_a_wrong_proposal_gets_a_problem_document_and_leaves_no_row(houses: Houses) -> None:
    houses.executor.start()
    for change in (
        {"mailbox": "Trash"},
        {"to": "trash"},
        {"from": "processed"},
        {"queue": "sales"},
        {"emailId": "M123"},
        {"emailId": "X" + "0" * 32},
        {"reason": "x" * 501},
    ):
        answer = houses.intake("POST", "/v1/proposals", json=RIGHT | change)
        assert "application/problem+json" == answer.headers["content-type"]
        problem = answer.json()
        assert 400 <= answer.status_code < 500, problem
        assert {"code", "detail", "fix"} <= {name for name, said in problem.items() if said}, problem
        assert problem["retryable"] is False
    with closing(sqlite3.connect(houses.executor.folder / "journal.db")) as journal:
        assert [(0,)] == journal.execute("SELECT count(*) FROM proposals").fetchall()
