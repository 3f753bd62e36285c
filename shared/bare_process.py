"""A process of ours that is given octets and nothing else, so that what hostile mail makes of it stays there."""

import subprocess
from collections.abc import Sequence


def bare_process(command: Sequence[str], *, bufsize: int = -1) -> subprocess.Popen[bytes]:
    """Start it: no environment, no descriptor but its three (its errors go nowhere), a session of its own, in `/`.

    `command` is an interpreter and a module of ours; nothing of a message may be an argument. Raises `OSError`.
    """
    # S603: see above.
    return subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        cwd="/",
        close_fds=True,
        start_new_session=True,
        bufsize=bufsize,
    )
