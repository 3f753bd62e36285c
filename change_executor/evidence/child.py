"""The child: octets of one message in, one JSON reading out, and nothing else in reach.

Run as `python -I -m change_executor.evidence.child`, with an empty environment and no descriptor but the three. Its
input is one line of JSON and then the octets: `{"cut": bool, "names": [...], "authservId": string or null,
"knownHosts": [...]}` asks for the reading, `{"html": true}` for the message's HTML, cleaned. Here alone are MIME and
HTML parsed.
"""

import encodings
import gc
import json
import pkgutil
import sys
from codecs import lookup
from contextlib import suppress
from typing import Any

# Loaded before everything is taken away; shared.message itself loads it only when a text is asked for.
import shared.message.html  # noqa: F401
from change_executor.evidence.cleaning import cleaned_html
from change_executor.evidence.confine import confine
from change_executor.evidence.reading_message import read_message
from shared.bare_process import be_the_first_to_go


def main() -> None:
    """Read, confine, parse, answer."""
    be_the_first_to_go()
    # What the parent gave is taken whole before any of it is looked at.
    untrusted = sys.stdin.buffer.read()
    _load_every_charset()
    confine()
    head, _, octets = untrusted.partition(b"\n")
    request: dict[str, Any] = json.loads(head)
    # A reading lives for one second, and a collector that runs through a hostile tree costs more than the tree.
    gc.disable()
    if request.get("html"):
        sys.stdout.buffer.write(json.dumps({"html": cleaned_html(octets)}).encode("ascii"))
        sys.stdout.buffer.flush()
        return
    reading = read_message(
        octets,
        cut=bool(request["cut"]),
        names=[str(name) for name in request["names"]],
        authserv_id=request["authservId"],
        known_hosts=[str(host) for host in request["knownHosts"]],
    )
    sys.stdout.buffer.write(reading.canonical())
    sys.stdout.buffer.flush()


def _load_every_charset() -> None:
    for module in pkgutil.iter_modules(encodings.__path__):
        with suppress(LookupError, ImportError):
            lookup(module.name)


if __name__ == "__main__":
    main()
