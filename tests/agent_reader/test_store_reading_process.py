"""Reading beside the reader: real processes, killed and killing; what is told of it, and that nothing else is lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from agent_reader.errors import ReadingEnded
from agent_reader.keep import Keep
from agent_reader.store import Store
from agent_reader.store.reader import LONG_BACKLOG
from agent_reader.store.reading_child import answer
from agent_reader.store.reading_pool import ReadingPool, ReadingShare, process_count
from agent_reader.store.reading_process import CHILD, DIED, CannotRead, ReadingProcess
from agent_reader.store.reading_wire import Asked, AskedHeader, AskedMessage
from shared.landlock import landlock_version
from tests.agent_reader.mirrored import ACCOUNT, fetched, letter, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_reader.store import AccountMirror

_KILLER, _HANGER = "this one kills", "this one never ends"

# The process as it is, with a fault such as a library may have.
_FAULTY = f"""
import os, signal, time
from agent_reader.store import reading_child
read = reading_child.read
def faulty(fetched, *rest):
    if {_KILLER.encode()!r} in fetched.octets:
        os.kill(os.getpid(), signal.SIGSEGV)
    while {_HANGER.encode()!r} in fetched.octets:
        time.sleep(60)
    return read(fetched, *rest)
reading_child.read = faulty
reading_child.main()
"""
FAULTY = (sys.executable, "-c", _FAULTY)
# The process as it is, but what it answers is what it has.
_TELLING = """
import os, sys
from agent_reader.store import reading_child
def told(_):
    descriptors = [each for each in range(64) if os.path.exists(f"/proc/self/fd/{each}")]
    rooms = ("ssl", "imaplib", "imapclient", "agent_reader.store.database")
    loaded = [each for each in rooms if each in sys.modules]
    has = [sorted(set(os.environ) - {"LC_CTYPE"}), descriptors, loaded, os.getcwd()]
    return reading_child.Answer(None, (), repr(has))
reading_child.answer = told
reading_child.main()
"""


# The process as it is, and what it gets hold of in the end: the index by its path, and a charset not loaded yet.
_TRYING = """
import codecs, sys
from agent_reader.store import reading_child
def tried(asked):
    try:
        got = len(open(asked.mailbox_id, "rb").read())
    except OSError as error:
        got = type(error).__name__
    late = "encodings.cp500" not in sys.modules and codecs.lookup("cp500").name
    return reading_child.Answer(None, (), repr((got, late)))
reading_child.answer = tried
"""
_IN_ITS_PLACE = {
    "as it is": "",
    "without it": "from shared import landlock; landlock.landlock_version = lambda: 0",
}


def asked(uid: int, text: str) -> AskedMessage:
    message = fetched(uid, letter(text))
    return AskedMessage("F1", 1, uid, message.internaldate, message.size, message.octets, b"", Keep.EVERYTHING)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def process(stack: ExitStack, command: Sequence[str] = CHILD, seconds: float = 60) -> ReadingProcess:
    made = ReadingProcess(command, seconds)
    stack.callback(made.close)
    return made


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_reads_as_the_reader_itself_does(stack: ExitStack) -> None:
    wanted: list[Asked] = [
        asked(1, "one"),
        AskedHeader(b"Message-ID: <a@x>\r\nSubject: hello\r\n\r\n"),
        asked(2, "zwei: Größe"),
    ]
    assert [answer(each) for each in wanted] == process(stack).read(wanted)


def test_a_process_has_no_environment_no_descriptor_and_no_code_that_speaks_imap(stack: ExitStack) -> None:
    (told,) = process(stack, (sys.executable, "-c", _TELLING)).read([asked(1, "one")])
    assert repr([[], [0, 1, 2], [], "/"]) == told.error


@pytest.mark.parametrize("kernel", _IN_ITS_PLACE)
def test_a_process_cannot_open_the_index_by_its_path_where_the_kernel_has_landlock(
    stack: ExitStack, tmp_path: Path, kernel: str
) -> None:
    index = tmp_path / "mail-shop.db"
    index.write_bytes(b"all the mail")
    command = (sys.executable, "-B", "-c", f"{_TRYING}{_IN_ITS_PLACE[kernel]}\nreading_child.main()")
    message = replace(asked(1, "one"), mailbox_id=str(index))
    is_shut = kernel == "as it is" and landlock_version() > 0
    # Without Landlock it goes on, and the doctor says that it does.
    got = "PermissionError" if is_shut else len("all the mail")
    assert repr((got, "cp500")) == process(stack, command).read([message])[0].error


def test_a_killed_process_is_begun_anew_and_nothing_is_lost(stack: ExitStack) -> None:
    reading = process(stack)
    reading.read([asked(1, "one")])
    first = reading.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wanted = [asked(uid, f"letter {uid}") for uid in range(1, 40)]
    assert [answer(each) for each in wanted] == reading.read(wanted)
    assert first != reading.pid


def test_a_message_that_kills_the_process_is_told_from_the_others(stack: ExitStack) -> None:
    texts = ["one", _KILLER, "three", _KILLER, "five"]
    answers = process(stack, FAULTY).read([asked(uid, text) for uid, text in enumerate(texts)])
    assert ["", DIED, "", DIED, ""] == [each.error for each in answers]
    assert [True, False, True, False, True] == [each.reading is not None for each in answers]


def test_deaths_of_which_several_messages_had_one_each_are_no_messages_fault(stack: ExitStack, tmp_path: Path) -> None:
    # It dies at its first sight of every message: a machine that is short of memory, say.
    moody = (
        "import os, pathlib, signal\n"
        "from agent_reader.store import reading_child as child\n"
        "read = child.read\n"
        "def once(fetched, *rest):\n"
        f"    seen = pathlib.Path({str(tmp_path)!r}, str(fetched.uid))\n"
        "    if not seen.exists():\n"
        "        seen.mkdir()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return read(fetched, *rest)\n"
        "child.read = once\n"
        # It remembers by files, which the process as it is could not make.
        "child.shut = lambda readable: 0\n"
        "child.main()\n"
    )
    answers = process(stack, (sys.executable, "-c", moody)).read([asked(uid, "text") for uid in range(1, 5)])
    assert ["", "", "", ""] == [each.error for each in answers]


def test_a_signal_to_the_whole_group_leaves_its_end_to_the_reader_and_its_memory_is_bounded(stack: ExitStack) -> None:
    reading = process(stack)
    reading.read([asked(1, "one")])
    first = reading.pid
    assert first is not None
    os.kill(first, signal.SIGTERM)
    assert [""] == [each.error for each in reading.read([asked(2, "two")])]
    assert first == reading.pid
    limits = {
        line[:26].strip(): line[26:].split()[0] for line in Path(f"/proc/{first}/limits").read_text().splitlines()
    }
    assert 1024**3 < int(limits["Max address space"]) < 2 * 1024**3
    assert "0" == limits["Max processes"]
    assert ("0", "0") == (limits["Max core file size"], limits["Max file size"])


def test_a_message_that_is_never_read_is_told_from_the_others(stack: ExitStack) -> None:
    hurried = process(stack, FAULTY, seconds=1)
    assert ["", DIED] == [each.error for each in hurried.read([asked(1, "one"), asked(2, _HANGER)])]


def test_a_process_that_cannot_be_started_says_so_and_the_reader_reads_itself(tmp_path: Path) -> None:
    for command in (("/nonexistent",), (sys.executable, "-c", "raise SystemExit(1)")):
        reading = ReadingProcess(command, pauses=())
        with pytest.raises(CannotRead):
            reading.read([asked(1, "one")])
        reading.close()

    def no_share() -> ReadingShare:
        raise CannotRead

    for number, share in enumerate((ReadingPool(1, ("/nonexistent",), pauses=()).share, no_share)):
        with closing(Store(tmp_path / str(number), _now, processes=share)) as store:
            mirror, inbox = _begun(store)
            takes = [mirror.begin_add(inbox, [fetched(uid, letter(f"letter {uid}"))]) for uid in (1, 2, 3)]
            for take in takes:
                take()
            assert {1, 2, 3} == set(mirror.states(inbox))


def test_one_message_that_kills_the_reading_is_set_aside_and_the_others_come_in(tmp_path: Path) -> None:
    with closing(Store(tmp_path / "store", _now, processes=ReadingPool(2, FAULTY).share)) as store:
        mirror, inbox = _begun(store)
        texts = {1: "one", 2: _KILLER, 3: "three", 4: "four"}
        takes = [
            mirror.begin_add(inbox, [fetched(uid, letter(texts[uid])) for uid in uids]) for uids in ((1, 2), (3, 4))
        ]
        for take in takes:
            take()
        assert {1, 3, 4} == set(mirror.states(inbox))
        aside = mirror.set_aside(inbox)
        assert {2: ("message_unreadable", DIED)} == {uid: (each.code, each.cause) for uid, each in aside.items()}


def test_what_a_process_says_of_other_octets_is_not_believed(tmp_path: Path) -> None:
    lying = (
        "from agent_reader.store import reading_child as child\n"
        "from msgspec.structs import replace\n"
        "true = child.answer\n"
        "child.answer = lambda asked: true(replace(asked, octets=b'Subject: another\\r\\n\\r\\n'))\n"
        "child.main()\n"
    )
    folder = tmp_path / "store"
    with closing(Store(folder, _now, processes=ReadingPool(1, (sys.executable, "-c", lying)).share)) as store:
        mirror, inbox = _begun(store)
        mirror.begin_add(inbox, [fetched(1, letter("one"))])()
        assert {} == mirror.states(inbox)
        assert "message_unreadable" == mirror.set_aside(inbox)[1].code


def test_an_end_interrupts_what_is_read_and_leaves_no_process(tmp_path: Path) -> None:
    pool = ReadingPool(1, FAULTY)
    with closing(Store(tmp_path / "store", _now, processes=pool.share)) as store:
        mirror, inbox = _begun(store)
        mirror.begin_add(inbox, [fetched(1, letter("one"))])()
        (pid,) = pool.pids()
        endless, waiting = (mirror.begin_add(inbox, [fetched(uid, letter(_HANGER))]) for uid in (2, 3))
        ending = threading.Thread(target=mirror.stop_reading)
        ending.start()
        for take in (endless, waiting):
            with pytest.raises(ReadingEnded):
                take()
        ending.join(30)
        assert not is_running(pid)
        # Nothing of it is taken for a message's fault.
        assert {} == mirror.set_aside(inbox)
        assert {1} == set(mirror.states(inbox))


def test_processes_are_there_for_a_long_backlog_and_end_with_it(tmp_path: Path) -> None:
    pool = ReadingPool(1)
    with closing(Store(tmp_path / "store", _now, processes=pool.share)) as store:
        mirror = store.account(ACCOUNT)
        mirror.await_backlog(LONG_BACKLOG - 1)
        assert [] == pool.pids()
        mirror, inbox = _begun(store)
        mirror.await_backlog(LONG_BACKLOG)
        mirror.begin_add(inbox, [fetched(1, letter("one"))])()
        assert 1 == len(pool.pids())
        mirror.await_backlog(0)
        assert [] == pool.pids()


def test_accounts_take_turns_and_none_holds_all_processes_while_another_has_a_backlog() -> None:
    # The machine has room for one; a second is there while two accounts want it.
    pool = ReadingPool(1, FAULTY)
    huge, small = pool.share(), pool.share()
    with ExitStack() as stack:
        stack.callback(small.end)
        stack.callback(huge.end)
        hanging = [huge.read([asked(uid, _HANGER)]) for uid in range(2)]
        for uid in range(3):
            assert ["" for _ in range(2)] == [
                each.error for each in small.read([asked(uid, "one"), asked(uid, "two")]).result(60)
            ]
        assert 2 == len(pool.pids())
        # One account's end is no other's: what reads for the other reads on, and is taken for no fault of its mail.
        huge.end()
        for each in hanging:
            assert isinstance(each.exception(60), ReadingEnded)
        with pytest.raises(ReadingEnded):
            huge.read([asked(1, "one")])
        many = [small.read([asked(uid, f"letter {uid}")]) for uid in range(20)]
        assert ["" for _ in range(20)] == [answer.error for each in many for answer in each.result(60)]
        pids = pool.pids()
        small.end()
        assert [] == [pid for pid in pids if is_running(pid)]
        assert [] == pool.pids()
        # And again, from nothing.
        again = pool.share()
        stack.callback(again.end)
        assert [""] == [each.error for each in again.read([asked(1, "one")]).result(60)]


def test_whoever_comes_later_does_not_wait_for_all_that_others_have() -> None:
    # One process hangs, and another has all the turns: which of two gets on is the machine's choice.
    pool = ReadingPool(2, FAULTY)
    hung, *rest = (pool.share() for _ in range(4))
    shares = dict(zip(("first", "second", "third"), rest, strict=True))
    ended: list[str] = []
    with ExitStack() as stack:
        for share in (*rest, hung):
            stack.callback(share.end)
        hung.read([asked(1, _HANGER)])
        while len(pool.pids()) < 2:
            shares["first"].read([asked(1, "a letter")]).result(60)
        # All have asked before anything is read.
        pids = pool.pids()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        futures = []
        for name, share in shares.items():
            for uid in range(20):
                futures.append(share.read([asked(uid, "a letter")]))
                futures[-1].add_done_callback(lambda _, whose=name: ended.append(whose))  # type: ignore[misc]  # a default
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        for future in futures:
            future.result(60)
    assert [10, 10, 10] == [ended[:30].count(name) for name in shares]


def test_a_core_is_left_to_the_reader() -> None:
    assert [1, 1, 2, 3, 3] == [process_count(cores) for cores in (1, 2, 3, 4, 64)]


def _now() -> datetime:
    return datetime.now(UTC)


def _begun(store: Store) -> tuple[AccountMirror, str]:
    mirror = store.account(ACCOUNT)
    mirror.put_mailboxes([listed("INBOX")])
    (inbox,) = mirror.mailboxes()
    mirror.restart(inbox.id, 1000)
    mirror.await_backlog(LONG_BACKLOG)
    return mirror, inbox.id
