"""jmax: a command line; each step but the last is one run of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from jmax.config import load_config
from jmax.jmap import JmapClient
from steps import step

OPTIONS = ["--url", os.environ["READER"], "--token", os.environ["TOKEN"]]


def jmax(*arguments: str) -> object:
    command = [str(Path(sys.executable).with_name("jmax")), *arguments, *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


@step("session")
def _() -> None:
    with JmapClient(load_config(url=os.environ["READER"], token=os.environ["TOKEN"])) as client:
        assert "shop" == client.account_id


@step("mailboxes")
def _() -> None:
    assert {"INBOX", "Processed"} == {each["name"] for each in jmax("mailboxes")}


@step("search by reference")
def _() -> None:
    assert "An order" in json.dumps(jmax("search", "teapot"))


@step("reading")
def _() -> None:
    found = jmax("search", "receipt")
    emails = found if isinstance(found, list) else found["emails"]
    assert "Grüße aus Köln" in json.dumps(jmax("get", emails[0]["id"]), ensure_ascii=False)


@step("Email/changes", "has no method for it; asked by its general `request`")
def _() -> None:
    with JmapClient(load_config(url=os.environ["READER"], token=os.environ["TOKEN"])) as client:
        asked = ["Email/changes", {"accountId": client.account_id, "sinceState": os.environ["SINCE"]}, "0"]
        ((_, changes, _),) = client.request([asked])
    assert 1 == len(changes["created"])
