"""schemathesis against the JMAP endpoint over real sockets: never a fault, never a hang, bounded memory.

`make jmap-fuzz` makes it an environment of its own. Ends with 1 where it finds something, or a method failed inside.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.agent_reader.on_loopback import on_loopback
from tests.agent_reader.served import ACCOUNT, OTHER_ACCOUNT, house
from tests.fuzz.jmap_schema import jmap_schema

# Seconds. A request takes milliseconds; this is a hang, also on a machine that is busy.
_HANG: Final = "20"
# What a run may add to this process's memory, in octets; the largest answer may have 32 MiB, and waits on disk.
_MORE_MEMORY: Final = 256 * 1024 * 1024
# Whether what is refused was worth refusing is judged by the tests of the statements, not by a schema.
_CHECKS: Final = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def main(schemathesis: str, seconds: str) -> int:
    """Fuzz for so many seconds; 0 when nothing was found."""
    with tempfile.TemporaryDirectory() as folder, house(Path(folder) / "house") as reader:
        schema = Path(folder) / "jmap.json"
        _, found_ids = asyncio.run(reader.one("Email/query"))
        _, got = asyncio.run(reader.one("Email/get", ids=found_ids["ids"], properties=["blobId"]))
        blobs = [email["blobId"] for email in got["list"]]
        schema.write_text(json.dumps(jmap_schema([ACCOUNT, OTHER_ACCOUNT], blobs)))
        with on_loopback(reader.app) as listening:
            before = _most_memory()
            command = [schemathesis, "run", str(schema), "--url", f"http://127.0.0.1:{listening.port}"]
            command += ["-H", f"Authorization: Bearer {reader.token}", "--checks", _CHECKS, "--max-time", seconds]
            command += ["--request-timeout", _HANG, "--phases", "coverage,fuzzing", "--continue-on-failure"]
            found = subprocess.run(command, check=False, cwd=folder, env=os.environ | {"NO_COLOR": "1"}).returncode
            more = _most_memory() - before
        faults = [str(each) for each in reader.log.calls]
    sys.stderr.write(f"memory: {more // 1024} KiB more at most; faults: {len(faults)}\n")
    for fault in faults[:10]:
        sys.stderr.write(f"{fault[:2000]}\n")
    return int(bool(found or faults or more > _MORE_MEMORY))


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
