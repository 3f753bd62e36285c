"""What a monitor reads of a program."""

from __future__ import annotations

import httpx


def numbers(address: str) -> dict[str, float]:
    """The samples of `/metrics`, by name with labels."""
    answer = httpx.get(f"{address}/metrics", timeout=30)
    assert answer.status_code == 200, answer.text
    samples = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}
