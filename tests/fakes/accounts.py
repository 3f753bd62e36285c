"""Accounts of the reader on test servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_reader.config import Account
from tests.fakes.imap_server import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.dovecot import Dovecot


def reader_account(server: Dovecot, folder: Path, **changes: Any) -> Account:
    """The reader's login on a Dovecot, over TLS; its secret lies in the folder."""
    secret = folder / "reader.secret"
    secret.write_text(server.passwords["reader"] + "\n")
    secret.chmod(0o400)
    values = {
        "id": "shop",
        "host": server.host,
        "port": server.tls_port,
        "user": "reader",
        "secret_file": secret,
        "ca_file": server.ca_file,
        "sync_seconds": 1,
    }
    return Account.model_validate(values | changes)


def plain_account(port: int, folder: Path, **changes: Any) -> Account:
    """A login on a scripted server, or through a proxy: without TLS."""
    secret = folder / "plain.secret"
    secret.write_text("secret\n")
    secret.chmod(0o400)
    values = {"id": "shop", "host": HOST, "port": port, "tls": "none", "user": "reader", "secret_file": secret}
    return Account.model_validate(values | changes)
