"""The worker: one thread that does whatever the journal says is due, one proposal after the other.

It is woken by commits of this process and by deadlines; between those it sleeps. A proposal that fails is tried again
later and never holds up the others. Only one worker runs on a journal.
"""

import fcntl
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from structlog.typing import FilteringBoundLogger

from change_executor import checkpoints
from change_executor.agents import take_back
from change_executor.apply import Apply, Mover
from change_executor.checkpoints import Checkpoint
from change_executor.config import ExecutorSettings
from change_executor.connections import Connections
from change_executor.errors import JournalFault, JournalUnavailable
from change_executor.evidence.gather import Gather
from change_executor.evidence.reader_link import ReaderLink
from change_executor.evidence.run_child import Cancelled, read_in_child
from change_executor.journal.file import journal_path
from change_executor.journal.forget import forget_texts, forget_ways_in
from change_executor.journal.idempotency import forget_keys
from change_executor.journal.journal import Journal, Proposal, read_proposal
from change_executor.journal.moves import EXECUTOR
from change_executor.lifecycle import Event
from change_executor.looking import Looker
from change_executor.outcomes import Outcome, Waiting
from change_executor.reconcile import Reconcile
from change_executor.retrying import FIRST_RETRY, Retry, Servers
from change_executor.seeing import EXPIRING, Seen, look
from change_executor.steps import end, wait
from shared.proposal import State
from shared.settings import ConfigurationError

# A commit of another process wakes the worker by a socket; should that octet be lost, it is found so much later.
FALLBACK_SECONDS: Final = 15.0

FORGET_EVERY: Final = timedelta(hours=1)

# Of each state in one pass: all that an agent did in a month may be taken back by one press, which takes hours, and a
# person who approves meanwhile waits for no more of it than this, some seconds.
MOST_AT_ONCE: Final = 20

# A move that is under way may finish; whoever waits on a dead server is broken off.
GRACE_SECONDS: Final = 5.0
# Connecting to a server that does not answer cannot be broken off, and ends by itself after 15 s.
LAST_SECONDS: Final = 16.0

# What waits for these waits as it should; the rest is trouble.
_ORDINARY: Final = frozenset(
    {
        *(Waiting.STOPPED, Waiting.MOVES_PER_HOUR, Waiting.MOVES_PER_DAY, Waiting.BEING_MOVED),
        *(Waiting.NOT_FOUND_YET, Waiting.QUIET_TIME),
    }
)
_FOR_SIGNING_IN: Final = frozenset(
    {Waiting.LOGIN_REFUSED, Waiting.CERTIFICATE_REFUSED, Waiting.NO_STARTTLS, Waiting.SECRET_UNREADABLE}
)

_DONE_IN: Final = (State.APPROVED, State.UNDOING, State.DOUBTFUL, State.UNDO_DOUBTFUL, State.PENDING)


@dataclass(frozen=True, slots=True)
class Share:
    """What a worker of several has to itself (`change_executor.crew`): a name, and the queues that it alone `takes`.

    One of them is `first`: it holds the lock and forgets. `ending` is that of all.
    """

    name: str = "worker"
    takes: Callable[[str], bool] = lambda _: True
    first: bool = True
    ending: threading.Event = field(default_factory=threading.Event)


class Worker:
    """Expires, gathers evidence, applies, undoes, reconciles and forgets.

    `start` takes the journal's one worker lock and begins; `stop` sets the share's `ending` and ends within seconds.
    """

    def __init__(
        self,
        journal: Journal,
        settings: ExecutorSettings,
        *,
        apply: Apply,
        reconcile: Reconcile,
        gather: Gather,
        connections: Connections,
        log: FilteringBoundLogger,
        share: Share | None = None,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._apply = apply
        self._reconcile = reconcile
        self._gather = gather
        self._connections = connections
        self._log = log
        self._share = Share() if share is None else share
        self._wake = threading.Event()
        self._ending = self._share.ending
        self._thread: threading.Thread | None = None
        self._lock: int | None = None
        self._grace_seconds = GRACE_SECONDS
        # By proposal and state, so that a step forward is never held back by the failures of the step before.
        self._retries: dict[tuple[str, State], Retry] = {}
        self._forget_at: datetime | None = None

    def hold(self, lock: int) -> None:
        """Take over the worker lock that this process holds already; `start` takes none then."""
        self._lock = lock

    def wake(self) -> None:
        """Let it look at once for what is due; from any thread."""
        self._wake.set()

    def start(self) -> None:
        """Begin. Raises `ConfigurationError` where another process's worker runs on this journal."""
        assert self._thread is None, "a worker is started once"
        if self._lock is None and self._share.first:
            self._lock = take_worker_lock(self._settings.journal.url)
        self._journal.listen(self._wake.set)
        self._thread = threading.Thread(target=self._run, name=self._share.name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, *, release: bool = True) -> bool:
        """End, and return whether it has ended; a move that is under way gets a few seconds to finish.

        Not `release`: the lock stays with this process.
        """
        if self._thread is None:
            return True
        self._ending.set()
        self._wake.set()
        self._thread.join(self._grace_seconds)
        if self._thread.is_alive():
            self._connections.break_all()
            self._thread.join(LAST_SECONDS)
        self._journal.unlisten(self._wake.set)
        ended = not self._thread.is_alive()
        if ended and release and self._lock is not None:
            os.close(self._lock)
            self._lock = None
        return ended

    def pass_once(self) -> float:
        """Do everything that is due now; return how many seconds to sleep unless woken. Raises `JournalUnavailable`."""
        seen = self._look()
        if self._put_in_order(seen):
            seen = self._look()
        if self._share.first:
            self._forget()
        servers, work = Servers(), self._work(seen)
        begun: Counter[State] = Counter()
        for done, proposal in enumerate(work, start=1):
            if self._ending.is_set():
                return 0.0
            # Where a server is down all that waits for it is told so now: each pass waits in vain for it once more.
            if begun[proposal.state] < MOST_AT_ONCE or self._credential(proposal) in servers.in_trouble:
                begun[proposal.state] += 1
                self._attend(proposal, servers)
            # Evidence takes a second each: a person who approved meanwhile does not wait for all of it.
            if proposal.state is State.PENDING and done < len(work):
                return 0.0
        return 0.0 if begun.total() < len(work) else self._sleep_seconds(seen)

    def _run(self) -> None:
        while not self._ending.is_set():
            self._wake.clear()
            try:
                seconds = self.pass_once()
                self._journal.troubles.worked(self._share.name)
                self._wake.wait(seconds)
            except JournalUnavailable as error:
                self._log.error("journal:unavailable", error=str(error), fault=error.fault.value, fix=error.fix)
                self._rest(error.fault)
            except Exception as error:  # noqa: BLE001 - a bug in one pass must not end the hand that moves
                self._log.error("worker:failed", error=type(error).__name__)
                # What no executor wrote reads like a bug; of either somebody must hear, since nothing moves.
                self._rest(JournalFault.NOT_UNDERSTOOD)

    def _rest(self, fault: JournalFault) -> None:
        self._journal.troubles.failed(self._share.name, fault, self._journal.now())
        # Not on the wake: what was committed before the failure has set it.
        self._ending.wait(FIRST_RETRY.total_seconds())

    def _look(self) -> Seen:
        return look(self._journal, self._settings.stop_file, self._share.takes)

    def _put_in_order(self, seen: Seen) -> bool:
        """Take up what an earlier life left, end what is over, take back what was revoked; whether anything was."""
        left = seen.settled or any(each.state in (State.APPLYING, State.UNDOING) for each in seen.proposals)
        if left:
            self._apply.recover(self._share.takes)
        self._expire(seen.over)
        # What was in flight when its agent was revoked, and came back unmoved.
        for agent in seen.revoked:
            with self._journal.writing() as writing:
                take_back(writing, agent, EXECUTOR)
        return left or bool(seen.over or seen.revoked)

    def _work(self, seen: Seen) -> list[Proposal]:
        now = self._journal.now()
        found = [each for each in seen.proposals if _wants_work(each)]
        wanted = {_key(each) for each in found}
        self._retries = {key: retry for key, retry in self._retries.items() if key in wanted}
        due = [each for each in found if self._is_due(each, now, stopped=seen.stopped)]
        return sorted(due, key=self._rank)

    def _rank(self, proposal: Proposal) -> tuple[bool, int, int]:
        # What a person waits for comes first: moves, then doubts, then what is to be shown. And what has failed comes
        # after what has not, or one message that no server can tell of would be in the way of all.
        retry = self._retries.get(_key(proposal))
        return proposal.state is State.PENDING, 0 if retry is None else retry.tried, _DONE_IN.index(proposal.state)

    def _is_due(self, proposal: Proposal, now: datetime, *, stopped: bool) -> bool:
        if proposal.waiting_code == Waiting.STOPPED:
            return not stopped
        retry = self._retries.get(_key(proposal))
        return retry is None or not retry.holds(now)

    def _attend(self, proposal: Proposal, servers: Servers) -> None:
        credential, began = self._credential(proposal), time.monotonic()
        opened = self._connections.opened_so_far(credential or "")
        is_tried = credential not in servers.in_trouble
        try:
            if not is_tried:
                self._wait_for_server(proposal)
            else:
                self._step(proposal)
        except Cancelled:
            return
        except JournalUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad proposal never stops the others
            self._log.error("proposal:failed", proposal=proposal.id, error=type(error).__name__)
            self._retry_later(proposal)
            return
        after = self._read(proposal.id)
        self._tell_waiting(proposal, after)
        if is_tried and after.waiting_code == Waiting.MAIL_SERVER_UNREACHABLE and credential is not None:
            signed_in = self._connections.opened_so_far(credential) > opened
            servers.failed(credential, signed_in=signed_in, seconds=time.monotonic() - began)
        if after.state is proposal.state and _wants_work(after):
            self._retry_later(after, counts=is_tried or servers.in_trouble.get(credential or "", False))

    def _credential(self, proposal: Proposal) -> str | None:
        queue = self._settings.queue(proposal.queue)
        return None if queue is None else queue.credential

    def _step(self, proposal: Proposal) -> None:
        match proposal.state:
            case State.APPROVED:
                self._apply.move(proposal.id)
            case State.UNDOING:
                self._apply.undo(proposal.id)
            case State.DOUBTFUL | State.UNDO_DOUBTFUL:
                self._reconcile.reconcile(proposal.id)
            case _:
                self._gather.gather(proposal.id)

    def _wait_for_server(self, proposal: Proposal) -> None:
        # Another proposal has just waited in vain for this server: one time-out a pass is enough.
        if proposal.waiting_code == Waiting.MAIL_SERVER_UNREACHABLE:
            return
        with self._journal.writing() as writing:
            if writing.proposal(proposal.id).version == proposal.version:
                wait(writing, proposal, Waiting.MAIL_SERVER_UNREACHABLE)

    def _tell_waiting(self, before: Proposal, after: Proposal) -> None:
        if after.waiting_code == before.waiting_code:
            return
        if after.waiting_code is None:
            self._log.info("proposal:goes_on", proposal=after.id, waited_for=before.waiting_code)
        elif after.waiting_code in _ORDINARY:
            self._log.info("proposal:wait", proposal=after.id, code=after.waiting_code)
        else:
            self._log.warning("proposal:wait", proposal=after.id, code=after.waiting_code)

    def _read(self, proposal_id: str) -> Proposal:
        with self._journal.reading() as connection:
            return read_proposal(connection, proposal_id)

    def _retry_later(self, proposal: Proposal, *, counts: bool = True) -> None:
        if proposal.waiting_code == Waiting.STOPPED:
            # Due once it is released, which wakes us. A deadline that nobody attends to would let us sleep no more.
            self._retries.pop(_key(proposal), None)
            return
        now = self._journal.now()
        retry = Retry.after(self._retries.get(_key(proposal)), now, was_tried=counts)
        due = self._held_until(proposal) or retry.due
        if proposal.waiting_code == Waiting.QUIET_TIME:
            with self._journal.reading() as connection:
                due = min(due, now + self._reconcile.quiet_left(connection, proposal.id))
        self._retries[_key(proposal)] = replace(retry, due=due)

    def _held_until(self, proposal: Proposal) -> datetime | None:
        # As soon as its credential may be tried again, and not before: trying sooner would tell nothing.
        queue, sign_ins = self._settings.queue(proposal.queue), self._connections.sign_ins
        if queue is None or sign_ins is None or proposal.waiting_code not in _FOR_SIGNING_IN:
            return None
        return sign_ins.held_until(queue.credential)

    def _expire(self, proposal_ids: list[str]) -> None:
        for proposal_id in proposal_ids:
            with self._journal.writing() as writing:
                proposal = writing.proposal(proposal_id)
                if proposal.state in EXPIRING:
                    end(writing, proposal, Event.EXPIRE, Outcome.NOT_DECIDED_IN_TIME)

    def _forget(self) -> None:
        now = self._journal.now()
        if self._forget_at is None or now >= self._forget_at:
            forget_texts(self._journal, timedelta(days=self._settings.forget_texts_after_days))
            forget_keys(self._journal)
            forget_ways_in(self._journal)
            self._forget_at = now + FORGET_EVERY

    def _sleep_seconds(self, seen: Seen) -> float:
        # What came or went since wakes it by its commit.
        now = self._journal.now()
        deadlines = [retry.due for retry in self._retries.values()]
        deadlines += [] if seen.next_expiry is None else [seen.next_expiry]
        return max(0.0, min([FALLBACK_SECONDS, *((deadline - now).total_seconds() for deadline in deadlines)]))


def make_worker(
    journal: Journal,
    settings: ExecutorSettings,
    *,
    mover: Mover,
    connections: Connections,
    log: FilteringBoundLogger,
    checkpoint: Checkpoint = checkpoints.pass_by,
    share: Share | None = None,
) -> Worker:
    """Return the worker of a journal with all that it uses; `mover` opens its sessions through `connections` too."""
    share = Share() if share is None else share
    look = Looker(connections).session
    reader = ReaderLink(settings.reader.socket, settings.reader.uid)
    read_octets = partial(read_in_child, cancelled=share.ending.is_set)
    return Worker(
        journal,
        settings,
        apply=Apply(journal, settings, mover, checkpoint),
        reconcile=Reconcile(journal, settings, look, checkpoint, open_move=mover.session),
        gather=Gather(journal, settings, look, reader, read_octets, checkpoint),
        connections=connections,
        log=log,
        share=share,
    )


def take_worker_lock(journal_url: str) -> int:
    """Return a descriptor that holds the one worker lock of a journal; closing it lets go.

    Raises `ConfigurationError` where another process holds it.
    """
    path = journal_path(journal_url)
    lock = os.open(path.with_name(path.name + ".worker"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigurationError(
            f"[journal] url = {journal_url}",
            "another change-executor is running on this journal.",
            "End it first, or give this one a journal of its own.",
        ) from None
    return lock


def _key(proposal: Proposal) -> tuple[str, State]:
    return proposal.id, proposal.state


def _wants_work(proposal: Proposal) -> bool:
    if proposal.state is State.PENDING:
        return proposal.evidence is None
    return proposal.state in _DONE_IN and proposal.waiting_code != Waiting.MOVED_TWICE
