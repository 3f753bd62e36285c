"""What a program here prints: a line of JSON for each step, whatever became of it."""

import json
import traceback
from collections.abc import Callable


def step(name: str, note: str = "") -> Callable[[Callable[[], None]], None]:
    """Run a step at once and print `{"step", "ok", "note"}`; a failure's note is its last line."""

    def run(action: Callable[[], None]) -> None:
        told = {"step": name, "ok": True, "note": note}
        try:
            action()
        except Exception as failure:  # noqa: BLE001 - whatever a client raises is its outcome
            traceback.print_exc()
            told |= {"ok": False, "note": f"{type(failure).__name__}: {failure}"[:300]}
        print(json.dumps(told), flush=True)  # noqa: T201 - what this program is for

    return run
