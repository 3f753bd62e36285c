"""The executor, ended by SIGKILL at the checkpoint that the file DIE_AT names: `-m ... serve --config PATH`.

The file is looked into at each checkpoint, so that one process recovers from a death and then dies the next.
"""

import os
import signal
import sys
from pathlib import Path

from change_executor.app import serve
from change_executor.checkpoints import CHECKPOINTS
from change_executor.config import ExecutorSettings
from shared.settings import load_settings


def main() -> None:
    fatal = Path(os.environ["DIE_AT"])

    def checkpoint(name: str) -> None:
        assert name in CHECKPOINTS, name
        if name == fatal.read_text():
            os.kill(os.getpid(), signal.SIGKILL)

    settings = load_settings(Path(sys.argv[sys.argv.index("--config") + 1]), ExecutorSettings)
    serve(settings, checkpoint=checkpoint)


if __name__ == "__main__":
    main()
