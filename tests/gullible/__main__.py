"""The long form: `python -m tests.gullible 10000` walks so many steps; `make gullible`."""

import sys
import tempfile
from pathlib import Path

from tests.gullible.test_gullible import proven
from tests.gullible.world import world

if __name__ == "__main__":
    steps = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as name, world(Path(name), seed=steps) as standing:
        proven(standing, steps)
        obeyed = ", ".join(f"{goal.value} {count}" for goal, count in sorted(standing.agent.obeyed.items()))
        sys.stdout.write(
            f"{steps} steps: {sum(standing.agent.obeyed.values())} orders obeyed ({obeyed}), "
            f"{len(standing.agent.proposed)} proposals, each with its warning; the mailbox is as it was.\n"
        )
