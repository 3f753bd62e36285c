"""What a doctor found: a closed list of faults, why each matters, and how a report is written."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

FINE, FOUND, NOT_SEEN = 0, 1, 2


class Fault(StrEnum):
    """Everything that can be wrong; the value is the code that programs read."""

    CONFIG_OWNER = "config_owner"
    CONFIG_MODE = "config_mode"
    PARENT_OWNER = "parent_owner"
    PARENT_MODE = "parent_mode"
    SECRET_MISSING = "secret_missing"  # noqa: S105 - a code
    SECRET_OWNER = "secret_owner"  # noqa: S105 - a code
    SECRET_MODE = "secret_mode"  # noqa: S105 - a code
    SECRET_READABLE = "secret_readable"  # noqa: S105 - a code
    STATE_MISSING = "state_missing"
    STATE_OWNER = "state_owner"
    STATE_MODE = "state_mode"
    STATE_READABLE = "state_readable"
    SOCKET_FOLDER = "socket_folder"
    SOCKET_MODE = "socket_mode"
    SOCKET_GROUP = "socket_group"
    SOCKET_OPEN = "socket_open"
    SOCKET_CLOSED = "socket_closed"
    CODE_OWNER = "code_owner"
    CODE_MODE = "code_mode"
    CODE_WRITABLE = "code_writable"
    FOREIGN_PACKAGE = "foreign_package"
    HOUSE_IS_ROOT = "house_is_root"
    HOUSES_TOGETHER = "houses_together"
    HOUSE_SIGNS_IN = "house_signs_in"
    PEER_UID = "peer_uid"
    AGENT_UNKNOWN = "agent_unknown"
    AGENT_NOT_SEPARATED = "agent_not_separated"
    AGENT_IS_HOUSE = "agent_is_house"
    AGENT_IS_ROOT = "agent_is_root"
    AGENT_GROUP = "agent_group"
    AGENT_SUDO = "agent_sudo"
    HOUSE_GROUP = "house_group"
    LINK_GROUP = "link_group"
    SECRET_IN_ARGUMENTS = "secret_in_arguments"  # noqa: S105 - a code
    SECRET_IN_ENVIRONMENT = "secret_in_environment"  # noqa: S105 - a code
    TOKEN_IN_ARGUMENTS = "token_in_arguments"  # noqa: S105 - a code
    PROCESS_USER = "process_user"
    PROCESS_UNCONFINED = "process_unconfined"
    SECOND_WAY = "second_way"
    TOKEN_FILE = "token_file"  # noqa: S105 - a code
    SERVICE_FAILED = "service_failed"
    UNIT_MISSING = "unit_missing"
    UNIT_OWNER = "unit_owner"
    UNIT_WEAKENED = "unit_weakened"
    UNIT_SECRET = "unit_secret"  # noqa: S105 - a code
    UNIT_ADDRESS = "unit_address"
    GATE_BYPASSED = "gate_bypassed"
    GATE_CLOSED = "gate_closed"
    GATE_OPEN = "gate_open"
    GATE_STRANGER = "gate_stranger"
    LOGIN = "login"
    LOGIN_MAY_WRITE = "login_may_write"
    READING_PROCESS = "reading_process"
    CAPABILITY = "capability"
    MAILBOX = "mailbox"
    OCTETS = "octets"
    MOVE_RIGHTS = "move_rights"
    DATABASE = "database"
    CHAIN = "chain"
    HEADS = "heads"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105 - a code
    TOKEN_EXPIRING = "token_expiring"  # noqa: S105 - a code
    CLOCK = "clock"
    DISK = "disk"
    TEMPORARY_FULL = "temporary_full"
    BACKUP_MISSING = "backup_missing"
    BACKUP_OLD = "backup_old"
    BACKUP_READABLE = "backup_readable"


_WRITES_CODE: Final = "Whoever can write there is every user that runs the program, the holder of its secret included."
_SIGNS_IN: Final = "Whoever reads the password needs neither the program nor a person's signature."
_READS_STATE: Final = (
    "The index is the mail in plain text; the journal says who asked for what and holds digests of tokens."
)
_SOCKET: Final = "Only the executor may ask where a message is and what was read; its folder and mode are the door."
_IDENTITY: Final = "Users are the wall: who runs as another is that other, whatever a program refuses."
_UNIT: Final = "The unit is the second wall around a program that reads hostile mail."

WHY: Final = MappingProxyType(
    {
        Fault.CONFIG_OWNER: "Whoever owns the settings decides whose processes are let in and where messages go.",
        Fault.CONFIG_MODE: "Whoever writes the settings decides whose processes are let in and where messages go.",
        Fault.PARENT_OWNER: "The owner of a folder above can put another file in this one's place.",
        Fault.PARENT_MODE: "Whoever may write to a folder above can put another file in this one's place.",
        Fault.SECRET_MISSING: "Without it the program cannot sign in at its next start.",
        Fault.SECRET_OWNER: _SIGNS_IN,
        Fault.SECRET_MODE: _SIGNS_IN,
        Fault.SECRET_READABLE: _SIGNS_IN,
        Fault.STATE_MISSING: "The program keeps everything there, and cannot start without it.",
        Fault.STATE_OWNER: _READS_STATE,
        Fault.STATE_MODE: _READS_STATE,
        Fault.STATE_READABLE: _READS_STATE,
        Fault.SOCKET_FOLDER: _SOCKET,
        Fault.SOCKET_MODE: _SOCKET,
        Fault.SOCKET_GROUP: _SOCKET,
        Fault.SOCKET_OPEN: _SOCKET,
        Fault.SOCKET_CLOSED: "The executor finds no message without it, and every proposal waits.",
        Fault.CODE_OWNER: _WRITES_CODE,
        Fault.CODE_MODE: _WRITES_CODE,
        Fault.CODE_WRITABLE: _WRITES_CODE,
        Fault.FOREIGN_PACKAGE: "What is not there cannot be reached by a mistake: the reader has no mover, and the "
        "executor nothing that speaks to models.",
        Fault.HOUSE_IS_ROOT: "A program that runs as root is held by nothing.",
        Fault.HOUSES_TOGETHER: "One user for both lets the reader, which reads hostile mail, use the move login.",
        Fault.HOUSE_SIGNS_IN: "Nobody is meant to sign in as a program's user.",
        Fault.PEER_UID: "The other program is known by its uid alone.",
        Fault.AGENT_UNKNOWN: "Unless the agents' uids are named, any local process may knock, and nothing can be said "
        "of what agents reach.",
        Fault.AGENT_NOT_SEPARATED: "An agent that runs as the person who decides can decide by itself.",
        Fault.AGENT_IS_HOUSE: _IDENTITY,
        Fault.AGENT_IS_ROOT: _IDENTITY,
        Fault.AGENT_GROUP: "That group opens files or powers that the agent is to be kept from.",
        Fault.AGENT_SUDO: "An agent that may become somebody else is kept from nothing.",
        Fault.HOUSE_GROUP: "A program in the other's group can read what that group can.",
        Fault.LINK_GROUP: _SOCKET,
        Fault.SECRET_IN_ARGUMENTS: "Every user of the machine can read the arguments of every process.",
        Fault.SECRET_IN_ENVIRONMENT: "An environment is handed on to every child, and lands in dumps and logs.",
        Fault.TOKEN_IN_ARGUMENTS: "Every user of the machine can read the arguments of every process.",
        Fault.PROCESS_USER: _IDENTITY,
        Fault.PROCESS_UNCONFINED: _UNIT,
        Fault.SECOND_WAY: "A mail program with a password of its own changes the mailbox past everything here.",
        Fault.TOKEN_FILE: "Whoever reads a token is that agent.",
        Fault.SERVICE_FAILED: "What does not run does nothing: no mail is read, nothing is moved, no copy is made.",
        Fault.UNIT_MISSING: _UNIT,
        Fault.UNIT_OWNER: "Whoever writes a unit runs what they like, as root too.",
        Fault.UNIT_WEAKENED: _UNIT,
        Fault.UNIT_SECRET: "A unit and its environment can be read by every user (systemctl show).",
        Fault.UNIT_ADDRESS: "The doors are for this machine: from elsewhere nobody can tell whose process knocks.",
        Fault.GATE_BYPASSED: "The gate keeps nothing from a reader that has the mail login as well.",
        Fault.GATE_CLOSED: "The reader reads no mail until the gate lets it in.",
        Fault.GATE_OPEN: "A reader that is taken over could write: the gate is all that keeps it from it.",
        Fault.GATE_STRANGER: "Whoever listens there is given the local secret, and can invent mail.",
        Fault.LOGIN: "Nothing is read or moved until the mail server lets the program in.",
        Fault.LOGIN_MAY_WRITE: "The server has rights and could keep this login from writing; now only we do.",
        Fault.READING_PROCESS: "Without one a long backlog is read by what has the mail login and the index.",
        Fault.CAPABILITY: "A move needs MOVE, or a queue that allows copying, flagging and expunging one message.",
        Fault.MAILBOX: "A queue whose mailbox is not there cannot be worked, and ends the executor's start.",
        Fault.OCTETS: "What a person signed is proved by its octets; where they change, nothing can be moved, and a "
        "download is not what was read.",
        Fault.MOVE_RIGHTS: "What a person signs would be refused by the server.",
        Fault.DATABASE: "What is damaged is lost bit by bit; a copy of before is the way back.",
        Fault.CHAIN: "What is on record was changed, removed or put in another order.",
        Fault.HEADS: "A published head shows a journal that was made anew, if its own user cannot take it back.",
        Fault.TOKEN_EXPIRED: "The agent is refused with it.",
        Fault.TOKEN_EXPIRING: "The agent will be refused when it ends.",
        Fault.CLOCK: "Expiry, order and every date on record are as wrong as the clock.",
        Fault.DISK: "A full disk stops the sync and every decision: what cannot be recorded is not done.",
        Fault.TEMPORARY_FULL: "Our services go on and start again without it; other programs of this machine may not, "
        "and somebody filled it.",
        Fault.BACKUP_MISSING: "Journal, tokens and read log exist nowhere else.",
        Fault.BACKUP_OLD: "What happened since the last copy would be lost with the disk.",
        Fault.BACKUP_READABLE: _READS_STATE,
    }
)

# A tree with one wrong umask has ten thousand wrong files: the first few and the number say it.
_MOST_OF_A_KIND: Final = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: the code, what it is, and the command that mends it."""

    fault: Fault
    what: str
    fix: str

    @property
    def why(self) -> str:
        """Why it matters."""
        return WHY[self.fault]


@dataclass(frozen=True, slots=True)
class Report:
    """What one look gave: what is wrong, what could not be looked at, and what is worth knowing."""

    findings: tuple[Finding, ...] = ()
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status: 0 fine, 1 something is wrong, 2 nothing wrong was seen but not all could be looked at."""
        return FOUND if self.findings else NOT_SEEN if self.unseen else FINE

    def json(self, program: str) -> str:
        """Return the report as one JSON object on one line."""
        found = [{"code": each.fault, "what": each.what, "why": each.why, "fix": each.fix} for each in self.findings]
        whole = {"program": program, "findings": found, "unseen": self.unseen, "notes": self.notes}
        return json.dumps(whole, ensure_ascii=False)

    def lines(self, program: str) -> list[str]:
        """Return the report as lines for a person."""
        written = list(self.notes)
        for each in _few(self.findings):
            written += [f"{each.fault}: {each.what}", f"  why:  {each.why}", f"  mend: {each.fix}"]
        written += [f"not looked at: {each}" for each in self.unseen]
        counted = f"{len(self.findings)} finding{'' if len(self.findings) == 1 else 's'}"
        return [*written, f"{program}: {counted if self.findings else 'nothing wrong was found'}"]


@dataclass(slots=True)
class Looking:
    """A report in the making."""

    findings: list[Finding] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def find(self, fault: Fault, what: str, fix: str) -> None:
        """Add a finding, once."""
        finding = Finding(fault, what, fix)
        if finding not in self.findings:
            self.findings.append(finding)

    def add(self, report: Report) -> None:
        """Add another look's report."""
        self.findings += report.findings
        self.unseen += report.unseen
        self.notes += report.notes

    def report(self) -> Report:
        """Return what was found so far."""
        return Report(tuple(self.findings), tuple(self.unseen), tuple(self.notes))


def _few(findings: Iterable[Finding]) -> Iterable[Finding]:
    by_fault: dict[Fault, int] = {}
    for each in findings:
        by_fault[each.fault] = by_fault.get(each.fault, 0) + 1
        if by_fault[each.fault] <= _MOST_OF_A_KIND:
            yield each
    for fault, count in by_fault.items():
        if count > _MOST_OF_A_KIND:
            yield Finding(fault, f"... and {count - _MOST_OF_A_KIND} more (--json lists all)", "as above")
