"""The whole path on a sample mailbox: `python -m deploy.demo [--unattended]`."""

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import httpx

from deploy.demo import outcomes
from deploy.demo.agent import ACCOUNT, QUEUE
from deploy.demo.person import PageSurprise
from deploy.demo.street import AGENT, CHECKOUT, PERSON, DemoFailed, Street, open_street, wait_for
from deploy.demo.telling import Teller

_SYNC_SECONDS = 120.0


def main() -> int:
    """Run the demo; 0, or 1 with the reason on standard error."""
    parser = argparse.ArgumentParser(prog="make demo", description="Mailwarrant on a sample mailbox, whole.")
    parser.add_argument("--unattended", action="store_true", help="decide too, check every outcome, and end")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    started = time.monotonic()
    try:
        with open_street() as street:
            _run(street, unattended=arguments.unattended)
    except KeyboardInterrupt:
        print("\nEverything that the demo started has ended; its folder is gone.")
        return 0 if not arguments.unattended else 130
    except (DemoFailed, PageSurprise, httpx.HTTPError) as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    print(f"\nThe whole path works ({time.monotonic() - started:.0f} s).")
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(street: Street, *, unattended: bool) -> None:
    messages = street.start_mail_server()
    print(f"Mailwarrant: a tea shop's support mailbox of {messages} messages, for you to try.\n")
    street.start_reader()
    reader_token = _last_line(street.reader_command("token", "create", "--agent", AGENT))
    _show_sync(street, reader_token, messages)
    street.start_executor()
    proposer_token = _last_line(street.executor_command("token", "create", "--agent", AGENT, "--queue", QUEUE))
    street.executor_command("user", "add", PERSON)
    before = outcomes.whole_mailbox(street)
    proposals = _let_the_agent_work(street, reader_token, proposer_token)
    link = _last_line(street.executor_command("user", "link", PERSON))
    teller = Teller(street.intake_url, proposer_token, proposals)
    try:
        if unattended:
            print("\nA person decides, through the page:")
            outcomes.sign_everything(street, link, proposals, teller)
            print("\nChecked, as the mailbox's owner:")
            for line in outcomes.check_outcomes(street, before, proposals):
                print(f"  ok      {line}")
        else:
            _explain(street, link, reader_token)
            _tell_until_interrupted(street, teller)
    finally:
        teller.close()


def _show_sync(street: Street, token: str, messages: int) -> None:

    def synced() -> bool:
        street.check_alive()
        calls = [["Mailbox/get", {"accountId": ACCOUNT, "ids": None, "properties": ["totalEmails"]}, "m"]]
        using = ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"]
        answer = httpx.post(
            f"{street.reader_url}/jmap/api",
            json={"using": using, "methodCalls": calls},
            headers={"Authorization": f"Bearer {token}"},
            timeout=30,
            trust_env=False,
        )
        read: int = sum(mailbox["totalEmails"] for mailbox in answer.json()["methodResponses"][0][1]["list"])
        if sys.stdout.isatty():
            print(f"\r  reader  {read} of {messages} messages read", end="", flush=True)
        return read >= messages

    wait_for(synced, "the reader to read the mailbox", _SYNC_SECONDS)
    print(f"\r  reader  {messages} of {messages} messages read")


def _let_the_agent_work(street: Street, reader_token: str, proposer_token: str) -> dict[str, dict[str, str]]:
    addresses = {
        "reader": street.reader_url,
        "intake": street.intake_url,
        "readerToken": reader_token,
        "proposerToken": proposer_token,
    }
    with subprocess.Popen(
        [sys.executable, "-m", "deploy.demo.agent"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        json.dump(addresses, agent.stdin)
        agent.stdin.close()
        last = ""
        for line in agent.stdout:
            if last:
                print(last, flush=True)
            last = line.rstrip("\n")
    if agent.returncode != 0:
        raise DemoFailed(f"the scripted agent ended with status {agent.returncode}")
    proposals = json.loads(last)
    assert isinstance(proposals, dict)
    return proposals


def _explain(street: Street, link: str, reader_token: str) -> None:
    query = {
        "using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"],
        "methodCalls": [
            ["Email/query", {"accountId": ACCOUNT, "filter": {"text": "refund"}, "limit": 5}, "a"],
            [
                "Email/get",
                {
                    "accountId": ACCOUNT,
                    "#ids": {"resultOf": "a", "name": "Email/query", "path": "/ids"},
                    "properties": ["subject", "from", "preview"],
                },
                "b",
            ],
        ],
    }
    executor = Path(sys.executable).parent / "change-executor"
    print(
        f"""
Sign in here (the link works once, for ten minutes), and decide:

  {link}

Another link: {executor} user link {PERSON} --config {street.executor_config}

What the agent's side looks like, to paste into another terminal:

  curl -s {street.reader_url}/jmap/api -H 'Authorization: Bearer {reader_token}' \\
    -H 'Content-Type: application/json' -d '{json.dumps(query)}'

This demo runs everything as one user and is NO boundary: a real agent must run under an OS user of its own.
Ctrl-C ends everything that was started. What happens now:
"""
    )


def _tell_until_interrupted(street: Street, teller: Teller) -> None:
    pause = threading.Event()
    while True:
        street.check_alive()
        teller.tell_changes()
        pause.wait(0.5)


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip()


if __name__ == "__main__":
    sys.exit(main())
