"""The executor, ended by SIGKILL when it passes the checkpoint named in DIE_AT: `-m ... serve --config PATH`."""

import os
import signal
import sys
from pathlib import Path

from change_executor.app import serve
from change_executor.checkpoints import CHECKPOINTS
from change_executor.config import ExecutorSettings
from shared.settings import load_settings


def main() -> None:
    fatal = os.environ["DIE_AT"]
    assert fatal in CHECKPOINTS, fatal

    def checkpoint(name: str) -> None:
        if name == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = load_settings(Path(sys.argv[sys.argv.index("--config") + 1]), ExecutorSettings)
    serve(settings, checkpoint=checkpoint)


if __name__ == "__main__":
    main()
