"""The sign-in of a person at the provider, once per house: by device code (RFC 8628) or by a page that comes back here.

The second is RFC 8252 §7.3: a loopback address with a port of the moment, PKCE (RFC 7636) and a state of its own.
"""

import base64
import hashlib
import http.client
import socket
from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

from shared.oauth import OAuth, OAuthFailure, Tokens, ask_for_tokens, post_form, refusal
from shared.time_and_chance import RandomOctets

# Nobody takes longer to sign in; a code left on a screen ends.
SIGN_IN_SECONDS: Final = 900
_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_DEFAULT_INTERVAL_SECONDS: Final = 5  # RFC 8628 §3.2
_SLOW_DOWN_SECONDS: Final = 5  # RFC 8628 §3.5
_MAX_REQUEST_OCTETS: Final = 16 * 1024
# A browser that connects and says nothing must not hold the one that comes back with the code.
_REQUEST_SECONDS: Final = 5.0

_PAGE: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
    b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\r\n"
)


def sign_in_by_device(
    oauth: OAuth, say: Callable[[str], None], now: Callable[[], float], wait: Callable[[float], None]
) -> Tokens:
    """Show an address and a code, and wait until a person has entered it anywhere. Raises `OAuthFailure`."""
    at = oauth.endpoints
    if not at.device:
        raise OAuthFailure(
            "This provider gives no mail access by device code.",
            "Sign in with --browser: where the browser is on another machine, forward the port (ssh -L).",
            retryable=False,
        )
    status, answer = post_form(at.device, {"client_id": oauth.client_id, "scope": at.scope})
    code, user_code = answer.get("device_code"), answer.get("user_code")
    address = answer.get("verification_uri") or answer.get("verification_url")
    if status != http.HTTPStatus.OK or not all(isinstance(each, str) for each in (code, user_code, address)):
        raise refusal(status, answer)
    say(f"Open {_shown(address)} in any browser and enter the code {_shown(user_code)}")
    interval = _seconds(answer.get("interval"), _DEFAULT_INTERVAL_SECONDS)
    ends = now() + min(_seconds(answer.get("expires_in"), SIGN_IN_SECONDS), SIGN_IN_SECONDS)
    while now() < ends:
        wait(interval)
        try:
            return ask_for_tokens(oauth, {"grant_type": _DEVICE_GRANT, "device_code": str(code)}, now)
        except OAuthFailure as failure:
            if failure.reason == "slow_down":
                interval += _SLOW_DOWN_SECONDS
            elif failure.reason != "authorization_pending" and not failure.retryable:
                raise
    raise _nobody_came()


def sign_in_by_browser(
    oauth: OAuth,
    say: Callable[[str], None],
    now: Callable[[], float],
    random_octets: RandomOctets,
    port: int = 0,
) -> Tokens:
    """Show an address; the provider's page sends the browser back to a port of this machine. Raises `OAuthFailure`.

    `port`: which one, 0 for any free one.
    """
    at = oauth.endpoints
    if not at.authorize:
        raise OAuthFailure("This provider has no sign-in page.", "Sign in with --device.", retryable=False)
    verifier, state = _token(random_octets), _token(random_octets)
    with socket.create_server(("127.0.0.1", port)) as listener:
        back = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        asked = {
            "response_type": "code",
            "client_id": oauth.client_id,
            "redirect_uri": back,
            "scope": at.scope,
            "state": state,
            "code_challenge": _unpadded(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
            # Google gives a refresh token only when asked so, and then only at a consent.
            "access_type": "offline",
            "prompt": "consent",
        }
        say(f"Open {at.authorize}?{urlencode(asked)}")
        code = _code_that_comes_back(listener, state, now)
    grant = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "code_verifier": verifier}
    return ask_for_tokens(oauth, grant, now)


def _code_that_comes_back(listener: socket.socket, state: str, now: Callable[[], float]) -> str:
    ends = now() + SIGN_IN_SECONDS
    while (left := ends - now()) > 0:
        listener.settimeout(left)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            break
        with connection:
            connection.settimeout(_REQUEST_SECONDS)
            answer = _query(connection)
            # Any process of this machine can come here; only the page that was asked knows the state.
            if answer.get("state") != state:
                _answer(connection, b"This is not the sign-in that is awaited.\n")
                continue
            if "code" in answer:
                _answer(connection, b"Signed in. This window can be closed.\n")
                return answer["code"]
            _answer(connection, b"The provider refused; the terminal says why.\n")
            raise refusal(http.HTTPStatus.OK, answer)
    raise _nobody_came()


def _query(connection: socket.socket) -> dict[str, str]:
    octets = b""
    try:
        while b"\r\n" not in octets and len(octets) < _MAX_REQUEST_OCTETS:
            piece = connection.recv(_MAX_REQUEST_OCTETS)
            if not piece:
                break
            octets += piece
    except OSError:
        return {}
    words = octets.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or words[0] != "GET":  # noqa: PLR2004 - method, target, version
        return {}
    return {name: values[0] for name, values in parse_qs(urlsplit(words[1]).query).items()}


def _answer(connection: socket.socket, text: bytes) -> None:
    try:
        connection.sendall(_PAGE + text)
    except OSError:
        return  # The code is here already; the window stays blank.


def _token(random_octets: RandomOctets) -> str:
    return _unpadded(random_octets(32))


def _unpadded(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def _seconds(value: object, default: int) -> int:
    return int(str(value)) if str(value).isdigit() and int(str(value)) > 0 else default


def _shown(value: object) -> str:
    return "".join(character if "!" <= character <= "~" else "?" for character in str(value))[:200]


def _nobody_came() -> OAuthFailure:
    return OAuthFailure("Nobody signed in in time.", "Start again.", retryable=False)
