"""A process of ours that is given octets and nothing else, so that what hostile mail makes of it stays there."""

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def bare_process(command: Sequence[str], *, bufsize: int = -1) -> subprocess.Popen[bytes]:
    """Start it: no environment, no descriptor but its three (its errors go nowhere), a session of its own, in `/`.

    `command` is an interpreter and a module of ours; nothing of a message may be an argument. Raises `OSError`.
    """
    # S603: see above.
    return subprocess.Popen(  # noqa: S603 - see above
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


def be_the_first_to_go() -> None:
    """Say so of the calling process: where memory runs out, the kernel takes this one, and not who began it."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
