"""The gate, where the reader comes through one: its files, user and unit, and whether it holds what it promises.

The promise is tried: signed in as the reader does, a command that writes is said, and the gate has to hang up.
"""

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from shared.doctor.finding import Fault, Looking
from shared.doctor.installation import Gate, House, Installation, Login, house_on, settings_in
from shared.doctor.places import look_at_code, look_at_house
from shared.doctor.separation import look_at_user
from shared.doctor.unit_files import credentials_of, settings_of
from shared.doctor.units import look_at_units_of
from shared.doctor.users import user_named, user_of

SERVICE: Final = "mailwarrant-gate.service"
_SOCKET: Final = "mailwarrant-gate.socket"
_USER: Final = "read-gate"
_STATES: Final = Path("/var/lib")
# read_gate/config.py's own, which is not there in the reader's environment.
_USUAL_ADDRESS: Final = "127.0.0.1:8623"
# Seconds for all that is said to the gate: behind it lies a login at a mail server.
_SECONDS: Final = 60.0
_MOST_SECRET_OCTETS: Final = 16 * 1024
_LINE_OCTETS: Final = 8192
# It writes, and changes nothing even where it passes: nobody is subscribed to that name (RFC 9051 §6.3.8). In the
# gate's log it is told from a reader that was taken over, which would gain nothing by it.
HARMLESS_WRITE: Final = b'UNSUBSCRIBE "mailwarrant doctor"'
_REFUSED: Final = b"* BYE refused by the gate"
_LISTENING: Final = "0A"
_AGAIN: Final = "sudo deploy/install --gate"


def gate_on(config: Path, units: Path) -> Gate | None:
    """Return the gate as gate.toml and its unit tell it; None where there is neither."""
    if not config.exists() and not (units / SERVICE).exists():
        return None
    handed, said = credentials_of(units, SERVICE), settings_of(units, SERVICE)
    house = house_on(_USER, user_named(said.get("User", [_USER])[-1]), config, units, SERVICE)
    # systemd makes it at the first start.
    state = _STATES / said.get("StateDirectory", [_USER])[-1]
    accounts = _tables(settings_in(config).get("accounts"))
    local = {str(each.get("id")): path for each in accounts if (path := _local_secret(each, handed)) is not None}
    program = said.get("ExecStart", [""])[-1].partition(" ")[0]
    return Gate(
        house=replace(house, state=state if state.exists() else None),
        listens=_address(settings_in(config)),
        logins=tuple(_login(each) for each in accounts),
        real_secrets=tuple(path for path in house.secrets if path not in local.values()),
        local_secrets=local,
        prefix=Path(program).parent.parent if program.startswith("/") else None,
    )


def look_at_gate(gate: Gate, installation: Installation, looking: Looking) -> None:
    """Look at a gate that is installed; what needs root is left out where this is not root."""
    look_at_house(gate.house, looking)
    if gate.prefix is not None:
        look_at_code([gate.prefix], gate.prefix / "bin" / "python", looking)
    look_at_units_of(gate.house.user, installation.units, (SERVICE, _SOCKET), looking)
    _look_at_its_user(gate.house, installation, looking)
    _look_past_it(gate, installation, looking)
    if _look_who_listens(gate, looking):
        for login_id, path in gate.local_secrets.items():
            if (secret := _content(path)) is not None:
                _try_it(gate, login_id, secret, looking)


def _look_at_its_user(house: House, installation: Installation, looking: Looking) -> None:
    user = house.user
    if user is None:
        fix = "systemd-sysusers deploy/sysusers.d/mailwarrant-gate.conf"
        looking.find(Fault.HOUSES_TOGETHER, f"there is no user {_USER}", fix)
        return
    if user.uid == 0:
        looking.find(Fault.HOUSE_IS_ROOT, "the gate runs as root", f"User={_USER} in {SERVICE}")
    others = [each for each in (installation.own.user, installation.other.user) if each is not None]
    for other in (*others, *installation.agents):
        if other.uid == user.uid:
            what = f"the gate runs as {user.name}, and so does another: the mail login is in its reach"
            looking.find(Fault.HOUSES_TOGETHER, what, f"User={_USER} in {SERVICE}; sudo deploy/install")
    look_at_user(user, [*others, *installation.agents], looking)
    for other in (*others, *installation.agents):
        if user.gid in other.groups and other.uid != user.uid:
            looking.find(Fault.HOUSE_GROUP, f"{other.name} is in the gate's group", f"gpasswd -d {other.name} {_USER}")


def _look_past_it(gate: Gate, installation: Installation, looking: Looking) -> None:
    """Whether the reader still has the login itself: in its settings, or as its password."""
    behind = {(login.host, login.user) for login in gate.logins}
    through = [each for each in installation.logins if (_numeric(each.host), each.port) == gate.listens]
    config = installation.own.config
    if not through:
        host, port = gate.listens
        what = f"no account of {config} comes through the gate"
        looking.find(Fault.GATE_BYPASSED, what, f'In {config}: host = "{host}", port = {port} (docs/gate.md)')
    for login in installation.logins:
        if (login.host, login.user) in behind:
            what = f"{login.id} signs in at {login.host} as {login.user} past the gate"
            looking.find(Fault.GATE_BYPASSED, what, f"Change that password; in {config}: the gate (docs/gate.md)")
    real = {content: path for path in gate.real_secrets if (content := _content(path))}
    for path in installation.own.secrets:
        if (found := real.get(_content(path) or b"")) is not None:
            fix = f"install -m 400 {next(iter(gate.local_secrets.values()), 'LOCAL')} {path}; then change the password"
            looking.find(Fault.GATE_BYPASSED, f"{path} holds the same password as {found}", fix)


def _look_who_listens(gate: Gate, looking: Looking) -> bool:
    """Whether somebody does who may: the service manager, which is root, or the gate itself."""
    host, port = gate.listens
    if host not in {"127.0.0.1", "::1"}:
        looking.find(Fault.UNIT_ADDRESS, f"the gate listens on {host}", f"In {gate.house.config}: 127.0.0.1:{port}")
    uids = set(_listening_uids(port))
    if not uids:
        fix = "systemctl enable --now mailwarrant-gate.socket mailwarrant-gate.service"
        looking.find(Fault.GATE_CLOSED, f"nobody listens at {host}:{port}", fix)
    allowed = {0} if gate.house.user is None else {0, gate.house.user.uid}
    for uid in sorted(uids - allowed):
        what = f"{user_of(uid).name} listens at port {port}, where the gate should"
        fix = f"ss -tlnp 'sport = {port}'; end it, make another local secret ({_AGAIN})"
        looking.find(Fault.GATE_STRANGER, what, fix)
    return bool(uids) and uids <= allowed


def _listening_uids(port: int) -> Iterator[int]:
    # proc_net_tcp: address:port in hexadecimal, state, ..., uid in the eighth column.
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for columns in map(str.split, lines):
            if columns[3] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                yield int(columns[7])


def _try_it(gate: Gate, login_id: str, secret: bytes, looking: Looking) -> None:
    where = f"the gate at {gate.listens[0]}:{gate.listens[1]}"
    mend = "systemctl restart mailwarrant-gate; journalctl -u mailwarrant-gate   # read-gate check tries its login"
    if not secret.isalnum():
        looking.unseen.append(f"{where}: the local secret of {login_id} is not letters and digits alone")
        return
    try:
        with closing(socket.create_connection(gate.listens, _SECONDS)) as sock, sock.makefile("rb") as said:
            said.readline(_LINE_OCTETS)
            let_in = _ask(sock, said, b'd1 LOGIN "' + login_id.encode() + b'" "' + secret + b'"')
            if not let_in.startswith(b"d1 OK"):
                looking.find(Fault.GATE_CLOSED, f"{where} does not let {login_id} in: {_shown(let_in)}", mend)
                return
            answer = _ask(sock, said, b"d2 " + HARMLESS_WRITE)
    except OSError as error:
        looking.find(Fault.GATE_CLOSED, f"{where}: {error.strerror or type(error).__name__}", mend)
        return
    if answer.startswith(b"d2 "):
        what = f"{where} passed on {HARMLESS_WRITE.decode()}: {_shown(answer)}"
        looking.find(Fault.GATE_OPEN, what, f"systemctl stop mailwarrant-gate agent-reader; {_AGAIN}")
    elif not answer.startswith(_REFUSED):
        looking.unseen.append(f"{where} said {_shown(answer)!r} to a command that writes")


def _ask(sock: socket.socket, said: Any, line: bytes) -> bytes:  # noqa: ANN401 - what makefile returns
    sock.sendall(line + b"\r\n")
    tag = line.partition(b" ")[0] + b" "
    while answer := said.readline(_LINE_OCTETS):
        if answer.startswith((tag, b"* BYE")):
            return bytes(answer)
    return b""


def _shown(untrusted_line: bytes) -> str:
    return untrusted_line[:200].decode("ascii", "replace").strip()


def _numeric(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def _tables(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any TOML
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _login(account: dict[str, Any]) -> Login:
    id_, host, user = (str(account.get(key, "")) for key in ("id", "host", "user"))
    port = account.get("port")
    return Login(id_, host, port if isinstance(port, int) else 993, user)


def _local_secret(account: dict[str, Any], handed: dict[str, Path]) -> Path | None:
    named = account.get("local_secret_file")
    return Path(named) if isinstance(named, str) else handed.get(str(account.get("local_secret_credential")))


def _address(settings: dict[str, Any]) -> tuple[str, int]:
    table = settings.get("gate")
    listen = table.get("listen", _USUAL_ADDRESS) if isinstance(table, dict) else _USUAL_ADDRESS
    host, _, port = str(listen).rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


def _content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_SECRET_OCTETS).strip()
    except OSError:
        return None
