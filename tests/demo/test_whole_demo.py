"""`make demo` as a person runs it: unattended to its end, and attended until Ctrl-C."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
DEMO = [sys.executable, "-m", "deploy.demo"]
SECONDS = 110


def _left_behind(folder: str) -> list[str]:
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if folder in command.read_text(errors="replace"):
                found.append(command.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_the_unattended_demo_checks_every_outcome_and_ends_well() -> None:
    # The proxy of a machine that has one is asked for nothing: here it is none.
    behind = os.environ | dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [*DEMO, "--unattended"], cwd=CHECKOUT, env=behind, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    assert 5 == done.stdout.count("asks   move it to")
    assert 3 == len(re.findall(r"ok .* lies in (?:Processed|Escalate)", done.stdout))
    assert "all 121 messages are there once" in done.stdout


def test_ctrl_c_ends_everything_that_the_demo_started() -> None:
    # Whatever runs in the background of a script ignores Ctrl+C, and so would the demo.
    command = ["env", "--default-signal=INT", *DEMO]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        watchdog = threading.Timer(SECONDS, demo.kill)
        watchdog.start()
        try:
            assert demo.stdout is not None
            said = []
            for line in demo.stdout:
                said.append(line)
                if "What happens now" in line:
                    break
            text = "".join(said)
            folder = re.search(r"--config (\S+)/executor/executor\.toml", text)
            assert folder, text
            assert re.search(r"http://localhost:\d+/link#[\w-]{43}", text)
            assert "curl -s http://127.0.0.1:" in text
            assert "NO boundary" in text
            assert _left_behind(folder[1])
            demo.send_signal(signal.SIGINT)
            rest = demo.stdout.read()
            assert 0 == demo.wait(), rest
        finally:
            watchdog.cancel()
    assert not _left_behind(folder[1])
    assert not Path(folder[1]).exists()
