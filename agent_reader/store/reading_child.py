"""The process that reads: octets of messages in, rows out. It has no credential, no index and no connection.

It runs as the reader's user, and gives up by itself what that user can reach (`shared/landlock.py`): it reads the
folders of code, which it loads a charset from when a message names one, and nothing else.

Run as `python -I -m agent_reader.store.reading_child` with an empty environment; it ends with its input. What kills
it (a fault in a library, its own limits) was one message's doing, which the reader then knows and sets aside.
"""

import ctypes
import gc
import resource
import signal
import sys
from contextlib import suppress
from typing import IO, Final

import msgspec

# Loaded before the first message is here; shared.message itself loads it only when a text is asked for.
import shared.message.html  # noqa: F401 - see above
from agent_reader.store.reading import Reading, read
from agent_reader.store.reading_wire import LENGTH_OCTETS, Answer, Asked, AskedHeader, AskedMessage, frame
from agent_reader.store.threads import links_of_header
from agent_reader.sync.mirror import FetchedMessage, MessageState
from shared.bare_process import be_the_first_to_go
from shared.landlock import folders_of_code, shut

# A text of 60 MiB took 1.1 GB to be read; the service itself may have 2.
_MEMORY_OCTETS: Final = 1536 * 1024 * 1024
_LIMITS: Final = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_FSIZE, 0),
    (resource.RLIMIT_AS, _MEMORY_OCTETS),
    # Root is exempt from this one; the reader does not run as root.
    (resource.RLIMIT_NPROC, 0),
)
# linux/prctl.h
_PR_SET_PDEATHSIG: Final = 1

_NO_STATE: Final = MessageState(frozenset(), None)
_WRITTEN: Final = msgspec.msgpack.Encoder()
_READ: Final = msgspec.msgpack.Decoder(list[Asked])


def main() -> None:
    """Say that it is ready, then answer until the input ends."""
    _end_with_the_reader()
    # It is one message's doing, and is begun anew.
    be_the_first_to_go()
    # Who started it ends it, by the end of its input or for good; a service manager tells the whole group.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    # Where the kernel has no Landlock it goes on without, which the doctor says.
    shut(folders_of_code())
    for limit, most in _LIMITS:
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, most))
    gc.freeze()
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    with suppress(BrokenPipeError):
        _say(taken, Answer(None, (), ""))
        while (payload := _frame(given)) is not None:
            for asked in _READ.decode(payload):
                _say(taken, answer(asked))


def _end_with_the_reader() -> None:
    """Be killed when the reader's thread that began this ends: what it is at may take longer than anybody wants."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def answer(asked: Asked) -> Answer:
    """Read what is asked about. Whatever one message brings about, the others are read."""
    try:
        if isinstance(asked, AskedHeader):
            return Answer(None, links_of_header(asked.header), "")
        return Answer(_read(asked), (), "")
    except Exception as error:  # noqa: BLE001 - see above
        # The error's text may quote the message; its name does not.
        return Answer(None, (), type(error).__name__)


def _read(asked: AskedMessage) -> Reading:
    fetched = FetchedMessage(asked.uid, _NO_STATE, asked.internaldate, asked.size, asked.octets, asked.header)
    return read(fetched, asked.mailbox_id, asked.uidvalidity, lambda _: asked.keep, asked.identity)


def _frame(given: IO[bytes]) -> bytes | None:
    length = given.read(LENGTH_OCTETS)
    return given.read(int.from_bytes(length)) if len(length) == LENGTH_OCTETS else None


def _say(taken: IO[bytes], said: Answer) -> None:
    taken.write(frame(_WRITTEN.encode(said)))
    taken.flush()


if __name__ == "__main__":
    main()
