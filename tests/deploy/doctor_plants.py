"""Mistakes to plant in a right installation, and the fault that a doctor must name."""

from __future__ import annotations

from typing import Final

from shared.doctor.finding import Fault
from tests.deploy.doctor_world import ADA, AGENT, EXECUTOR, LINK, READER
from tests.deploy.planting import (
    Plant,
    added,
    at_home,
    code,
    config,
    copied_in,
    edited,
    gone,
    group_of,
    link_to_home,
    member,
    mode,
    owner,
    running,
    secret_of,
    shell_given,
    state_of,
    unit,
)

TOKEN: Final = "mwr_abcdefgh_abcdefghijklmnopqrstuvwxyz234567_0123abcd"
FILES: Final = [
    Plant("the agent owns the settings", "reader", Fault.CONFIG_OWNER, owner(config("reader"), AGENT)),
    Plant("everybody writes the settings", "executor", Fault.CONFIG_MODE, mode(config("executor"), 0o666)),
    Plant("a group writes the settings", "executor", Fault.CONFIG_MODE, mode(config("executor"), 0o664)),
    Plant("the agent owns the settings' folder", "executor", Fault.PARENT_OWNER, owner(lambda w: w.etc, AGENT)),
    Plant("everybody writes the settings' folder", "reader", Fault.PARENT_MODE, mode(lambda w: w.etc, 0o777)),
    Plant("the secret is gone", "reader", Fault.SECRET_MISSING, gone(secret_of("reader"))),
    Plant("the reader owns the move password", "executor", Fault.SECRET_OWNER, owner(secret_of("executor"), READER)),
    Plant("everybody may read the secret", "executor", Fault.SECRET_MODE, mode(secret_of("executor"), 0o444)),
    Plant("a group may read the secret", "reader", Fault.SECRET_MODE, mode(secret_of("reader"), 0o440)),
    Plant("the state is gone", "executor", Fault.STATE_MISSING, gone(state_of("executor"))),
    Plant("the reader owns the journal's folder", "executor", Fault.STATE_OWNER, owner(state_of("executor"), READER)),
    Plant("everybody looks into the index", "reader", Fault.STATE_MODE, mode(state_of("reader"), 0o755)),
    Plant("root left a file", "reader", Fault.STATE_OWNER, added(lambda w: w.state("reader") / "new.db", bits=0o600)),
    Plant(
        "the journal is open", "executor", Fault.STATE_MODE, mode(lambda w: w.state("executor") / "journal.db", 0o644)
    ),
    Plant("the socket's folder is open", "reader", Fault.SOCKET_FOLDER, mode(lambda w: w.socket.parent, 0o2755)),
    Plant(
        "the agent owns the socket's folder", "executor", Fault.SOCKET_FOLDER, owner(lambda w: w.socket.parent, AGENT)
    ),
    Plant("the socket is open", "reader", Fault.SOCKET_MODE, mode(lambda w: w.socket, 0o666)),
    Plant("the socket is the agent's", "reader", Fault.SOCKET_MODE, owner(lambda w: w.socket, AGENT)),
    Plant("the socket is the agent's group's", "reader", Fault.SOCKET_GROUP, group_of(lambda w: w.socket, AGENT)),
    Plant("the executor is shut out", "executor", Fault.SOCKET_CLOSED, mode(lambda w: w.socket, 0o600)),
    Plant("the reader owns its code", "reader", Fault.CODE_OWNER, owner(code("reader", "agent_reader/app.py"), READER)),
    Plant("everybody writes code", "executor", Fault.CODE_MODE, mode(code("executor", "shared/fence.py"), 0o666)),
    Plant("everybody adds packages", "executor", Fault.CODE_MODE, mode(code("executor", "."), 0o777)),
    Plant("a folder above is open", "reader", Fault.PARENT_MODE, mode(lambda w: w.ground / "opt", 0o777)),
    Plant("the interpreter is the agent's", "reader", Fault.CODE_OWNER, link_to_home),
    Plant("the other house is there", "executor", Fault.FOREIGN_PACKAGE, added(code("executor", "agent_reader.py"))),
    Plant("MCP is in the executor", "executor", Fault.FOREIGN_PACKAGE, added(code("executor", "mcp/__init__.py"))),
    Plant("the other house comes by a .pth", "reader", Fault.FOREIGN_PACKAGE, copied_in),
]

USERS: Final = [
    Plant(
        "nobody is named as an agent",
        "executor",
        Fault.AGENT_UNKNOWN,
        edited(config("executor"), "allow_uids = [{agent}]", "allow_uids = []"),
    ),
    Plant(
        "the agent runs as the reader",
        "executor",
        Fault.AGENT_IS_HOUSE,
        edited(config("executor"), "[{agent}]", "[{reader}]"),
    ),
    Plant(
        "the agent runs as the executor",
        "executor",
        Fault.AGENT_IS_HOUSE,
        edited(config("executor"), "[{agent}]", "[{executor}]"),
    ),
    Plant("the agent runs as root", "executor", Fault.AGENT_IS_ROOT, edited(config("executor"), "[{agent}]", "[0]")),
    Plant(
        "the agent runs as the reviewer",
        "executor",
        Fault.AGENT_NOT_SEPARATED,
        edited(config("executor"), "[{agent}]", "[{ada}]"),
    ),
    Plant(
        "the reader's user may review",
        "executor",
        Fault.AGENT_NOT_SEPARATED,
        edited(config("executor"), "[{ada}]", "[{reader}]"),
    ),
    Plant(
        "both programs run as one",
        "executor",
        Fault.HOUSES_TOGETHER,
        edited(config("executor"), "\nuid = {reader}", "\nuid = {executor}"),
    ),
    Plant(
        "the reader's uid is not set", "executor", Fault.PEER_UID, edited(config("executor"), "\nuid = {reader}", "")
    ),
    Plant("the reader's user signs in", "reader", Fault.HOUSE_SIGNS_IN, shell_given),
    Plant("the agent is in the reader's group", "reader", Fault.AGENT_GROUP, member(AGENT, READER)),
    Plant("the agent reads raw disks", "reader", Fault.AGENT_GROUP, member(AGENT, "disk")),
    Plant("the agent may ask the private socket", "executor", Fault.LINK_GROUP, member(AGENT, LINK)),
    Plant("and it really can", "reader", Fault.SOCKET_OPEN, member(AGENT, LINK)),
    Plant("a person may ask the private socket", "reader", Fault.SOCKET_GROUP, member(ADA, LINK)),
    Plant("the reader is in the executor's group", "reader", Fault.HOUSE_GROUP, member(READER, EXECUTOR)),
]

PROCESSES: Final = [
    Plant(
        "a password in arguments",
        "reader",
        Fault.SECRET_IN_ARGUMENTS,
        running(lambda w: ["sh", f"{w.password}-reader"]),
    ),
    Plant(
        "a password in an environment",
        "executor",
        Fault.SECRET_IN_ENVIRONMENT,
        running(lambda _: ["sh"], lambda w: {"X": f"{w.password}-executor"}, ADA),
    ),
    Plant("a token in arguments", "reader", Fault.TOKEN_IN_ARGUMENTS, running(lambda _: ["sh", "--token", TOKEN])),
    Plant(
        "a mail password of another name",
        "executor",
        Fault.SECOND_WAY,
        running(lambda _: ["sh"], lambda _: {"IMAP_PASSWORD": "x"}),
    ),
    Plant(
        "the reader serves as the agent",
        "reader",
        Fault.PROCESS_USER,
        running(lambda w: [f"{w.prefix('reader')}/bin/agent-reader", "serve"]),
    ),
    Plant(
        "the reader serves unconfined",
        "reader",
        Fault.PROCESS_UNCONFINED,
        running(lambda w: [f"{w.prefix('reader')}/bin/agent-reader", "serve"], name=READER),
    ),
]

HOME: Final = [
    Plant(
        f"the agent has {name}",
        "reader" if len(name) % 2 else "executor",
        fault,
        added(at_home(name), text, AGENT, 0o644),
    )
    for name, text, fault in (
        (".mbsyncrc", "IMAPAccount shop\n", Fault.SECOND_WAY),
        (".offlineimaprc", "[general]\n", Fault.SECOND_WAY),
        (".config/neomutt/neomuttrc", "set folder\n", Fault.SECOND_WAY),
        (".msmtprc", "account default\n", Fault.SECOND_WAY),
        (".fetchmailrc", "poll x\n", Fault.SECOND_WAY),
        (".config/himalaya/config.toml", "[accounts.shop]\n", Fault.SECOND_WAY),
        (".thunderbird/profiles.ini", "[Profile0]\n", Fault.SECOND_WAY),
        (".local/share/keyrings/login.keyring", "x\n", Fault.SECOND_WAY),
        (".netrc", "machine mail.shop.example login owner\n", Fault.SECOND_WAY),
        (".claude.json", '{"mcpServers": {"mail": {"env": {"IMAP_HOST": "x"}}}}', Fault.SECOND_WAY),
        (".cursor/mcp.json", '{"mcpServers": {"gmail": {}}}', Fault.SECOND_WAY),
        (".codex/config.toml", '[mcp_servers.x]\nargs = ["imap.x.example"]\n', Fault.SECOND_WAY),
        (".bashrc", "export IMAP_PASSWORD=x\n", Fault.SECOND_WAY),
        (".config/mailwarrant/reader-token", "mwr_x\n", Fault.TOKEN_FILE),
    )
]

READER_UNIT, REVIEW_UNIT = "agent-reader.service", "change-executor-review.socket"
UNITS: Final = [
    Plant("a unit is gone", "reader", Fault.UNIT_MISSING, gone(unit(READER_UNIT))),
    Plant("a socket's unit is gone", "executor", Fault.UNIT_MISSING, gone(unit(REVIEW_UNIT))),
    Plant("everybody writes a unit", "reader", Fault.UNIT_OWNER, mode(unit(READER_UNIT), 0o666)),
    Plant(
        "the disk is writable again",
        "reader",
        Fault.UNIT_WEAKENED,
        edited(unit(READER_UNIT), "ProtectSystem=strict", "ProtectSystem=no"),
    ),
    Plant(
        "privileges may be gained",
        "executor",
        Fault.UNIT_WEAKENED,
        added(unit("change-executor.service.d/a.conf"), "[Service]\nNoNewPrivileges=no\n"),
    ),
    Plant(
        "all system calls are let through",
        "executor",
        Fault.UNIT_WEAKENED,
        added(unit("change-executor.service.d/a.conf"), "[Service]\nSystemCallFilter=\n"),
    ),
    Plant(
        "it sees the machine's devices",
        "executor",
        Fault.UNIT_WEAKENED,
        added(unit("change-executor.service.d/a.conf"), "[Service]\nTemporaryFileSystem=\nTemporaryFileSystem=/x\n"),
    ),
    Plant(
        "peers cannot be told apart",
        "reader",
        Fault.UNIT_WEAKENED,
        added(unit(f"{READER_UNIT}.d/a.conf"), "[Service]\nPrivateUsers=yes\n"),
    ),
    Plant(
        "it runs as another user",
        "reader",
        Fault.UNIT_WEAKENED,
        added(unit(f"{READER_UNIT}.d/a.conf"), "[Service]\nUser=root\n"),
    ),
    Plant(
        "a secret stands in the unit",
        "executor",
        Fault.UNIT_SECRET,
        added(unit("change-executor.service.d/a.conf"), "[Service]\nEnvironment=IMAP_PASSWORD=x\n"),
    ),
    Plant(
        "the review page is on every address",
        "executor",
        Fault.UNIT_ADDRESS,
        edited(unit(REVIEW_UNIT), "ListenStream=127.0.0.1:", "ListenStream=0.0.0.0:"),
    ),
]

PLANTS: Final = [*FILES, *USERS, *PROCESSES, *HOME, *UNITS]
