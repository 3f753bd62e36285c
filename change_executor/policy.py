"""What a queue allows; pure: settings, numbers and a clock in, a judgement out."""

import hashlib
from typing import Final

import rfc8785

from change_executor.config import ExecutorSettings, Queue

# Shown beside decisions and compared at apply: 64 bits of a digest tell any two policies apart.
_VERSION_CHARACTERS: Final = 16


def policy_version(settings: ExecutorSettings, queue: Queue) -> str:
    """Return the version of a queue's policy: it changes whenever anything an approval relied on changes."""
    login = settings.credential(queue.credential)
    relied_on = {
        "queue": queue.model_dump(mode="json"),
        "server": {"host": login.host, "port": login.port, "user": login.user},
    }
    return hashlib.sha256(rfc8785.dumps(relied_on)).hexdigest()[:_VERSION_CHARACTERS]
