"""An executor's settings as a test needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from change_executor.config import ExecutorSettings

if TYPE_CHECKING:
    from pathlib import Path


def settings_in(folder: Path, **queue: Any) -> ExecutorSettings:
    """Two queues of one login; `queue` changes the first."""
    support = {
        "id": "support",
        "credential": "move",
        "account": "shop",
        "incoming": "Incoming",
        "to": {"processed": {"mailbox": "Processed"}, "escalate": {"mailbox": "Escalate"}},
    }
    billing = support | {"id": "billing", "incoming": "Bills", "to": {"paid": {"mailbox": "Paid"}}}
    return ExecutorSettings.model_validate(
        {
            "review": {"allow_uids": [0]},
            "journal": {"url": f"sqlite:///{folder / 'journal.db'}"},
            "credentials": [{"id": "move", "host": "localhost", "user": "executor", "secret_file": "/nowhere"}],
            "queues": [support | queue, billing],
        }
    )
