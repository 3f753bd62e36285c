"""A day compressed: mail, proposals, decisions and accidents, and at the end nothing lost and nothing leaked.

`python -m tests.soak --deliveries 500 --proposals 60 --restarts 6`; without arguments the long form. It prints what it
does once in a while, and ends with status 1 and the findings where there are any.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.end_to_end.houses import MailServer, Person, furnish, houses_in
from tests.servers.dovecot import Dovecot
from tests.soak.accidents import Accidents
from tests.soak.day import Day
from tests.soak.findings import look_at_everything


def main() -> int:
    """Run a day; the exit status."""
    asked = _asked()
    chance = random.Random(asked.seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mw-soak-", dir="/tmp") as folder, Dovecot("wide") as dovecot:
        server = MailServer(dovecot.port, dovecot.passwords["reader"], dovecot.passwords["executor"])
        with houses_in(Path(folder), server, quiet_seconds=2) as houses, Person(houses) as person:
            day = Day(dovecot, houses, person, chance, deliveries=asked.deliveries, proposals=asked.proposals)
            day.prepare()
            furnish(houses)
            houses.reader.start()
            houses.executor.start()
            person.sign_in_first_time()
            accidents = Accidents(dovecot, houses, chance, asked.restarts)
            while not day.is_over:
                # The last third is calm, so that what grows in it is a leak and no start.
                accidents.maybe(day.share / 0.66)
                day.hour()
                if day.share >= 0.66:
                    day.sample()
                _say(f"{time.monotonic() - began:5.0f} s  {day.summary()}  {accidents.count} accidents")
            day.finish()
            findings = [*day.findings(), *look_at_everything(dovecot, houses, day)]
            for name, sizes in day.sizes():
                _say(f"{name}: {sizes}")
    _say(f"{len(findings)} findings after {time.monotonic() - began:.0f} s, seed {asked.seed}: {day.summary()}")
    for finding in findings:
        _say(f"  {finding}")
    return 1 if findings else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.soak")
    parser.add_argument("--deliveries", type=int, default=20_000)
    parser.add_argument("--proposals", type=int, default=2_000)
    parser.add_argument("--restarts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
