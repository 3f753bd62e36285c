from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.furnished import furnish_by_copy
from tests.end_to_end.houses import Houses, MailServer, houses_in
from tests.servers.dovecot import Dovecot


def mail_server(dovecot: Dovecot, executor_port: int | None = None) -> MailServer:
    return MailServer(dovecot.port, dovecot.passwords["reader"], dovecot.passwords["executor"], executor_port)


@pytest.fixture
def houses(dovecot: Dovecot, tmp_path: Path) -> Iterator[Houses]:
    """Both houses in front of a Dovecot where the executor may also move back; not started yet."""
    with houses_in(tmp_path, mail_server(dovecot)) as made:
        furnish_by_copy(made)
        yield made


@pytest.fixture(scope="module")
def mail() -> Iterator[Dovecot]:
    """The mail server of `street`."""
    with Dovecot("wide") as server:
        yield server


@pytest.fixture(scope="module")
def street(mail: Dovecot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    """Both houses, running, for a whole module: what a test leaves behind, the next one meets."""
    with houses_in(tmp_path_factory.mktemp("street"), mail_server(mail)) as made:
        furnish_by_copy(made)
        made.reader.start()
        made.executor.start()
        yield made
