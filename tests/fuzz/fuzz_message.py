"""Coverage-guided search for octets that break the reading of messages.

`python -m tests.fuzz.fuzz_message [LIBFUZZER OPTIONS] CORPUS...`, with atheris 3 installed. The first folder receives
what is found to reach new code; `tests/fuzz/corpus/message` and the goldens are seeds. Without a folder nothing is
kept. A finding ends the run and is written beside: reduce it, fix it, and put it into the corpus.
"""

import importlib
import sys


def main() -> None:
    """Instrument the package, then search until told to stop."""
    # By name: only who fuzzes has it installed, and the type checker must not need it.
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["shared"]):
        reading = importlib.import_module("tests.fuzz.message_reading")
    atheris.Setup(sys.argv, reading.check_reading)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
