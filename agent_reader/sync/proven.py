"""Which login each account's mirror was once brought up with, whole: a first start is told from a later one."""

import json
import threading
from pathlib import Path
from typing import Final

from shared.imap_login import ImapLogin
from shared.private_file import replace_private

# Beside the index.
FILE_NAME: Final = "logins.json"


class ProvenLogins:
    """A small file beside the index: account id to `user@host`; any thread may use it.

    A damaged or missing file proves nothing: the next start is then a first one, which only looks harder.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def knows_other(self, login: ImapLogin) -> bool:
        """Whether this account was brought up with another login."""
        return self._read().get(login.id) not in {None, _described(login)}

    def knows(self, login: ImapLogin) -> bool:
        """Whether this account was once brought up, whole, with this login."""
        return self._read().get(login.id) == _described(login)

    def prove(self, login: ImapLogin) -> None:
        """Remember it; the file is replaced in one step."""
        with self._lock:
            proven = self._read()
            if proven.get(login.id) == _described(login):
                return
            proven[login.id] = _described(login)
            self._write(proven)

    def forget(self, account_id: str) -> None:
        """Forget an account: its next start is a first one."""
        with self._lock:
            proven = self._read()
            if proven.pop(account_id, None) is not None:
                self._write(proven)

    def _write(self, proven: dict[str, str]) -> None:
        replace_private(self._path, json.dumps(proven).encode())

    def _read(self) -> dict[str, str]:
        try:
            proven = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(account): str(login) for account, login in proven.items()} if isinstance(proven, dict) else {}


def _described(login: ImapLogin) -> str:
    return f"{login.user}@{login.host}"
