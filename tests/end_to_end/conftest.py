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


@pytest.fixture
def running(houses: Houses) -> Houses:
    houses.reader.start()
    houses.executor.start()
    return houses
