"""OAuth 2 for a mail login: the access token that is shown to the server, refreshed when it runs out (RFC 6749).

Each house has a token file of its own, and so a consent of its own. Nothing of a token is ever in an error or a log.
"""

import fcntl
import http.client
import json
import os
import ssl
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlencode, urlsplit

from pydantic import Field, SecretStr, StringConstraints, model_validator

from shared.private_file import replace_private
from shared.settings import AbsolutePath, ConfigurationError, Section, read_secret

# A token endpoint answers within a second or two; the sync waits for it.
TOKEN_SECONDS: Final = 20.0
# The largest answers carry three tokens of some 2 KiB each.
_MAX_ANSWER_OCTETS: Final = 256 * 1024
# A token that ends sooner is renewed before it is shown: signing in takes seconds, and clocks differ.
_EARLY_SECONDS: Final = 120
_DEFAULT_LIFETIME_SECONDS: Final = 3600  # RFC 6749 §5.1: `expires_in` is only recommended

SecureUrl = Annotated[
    str,
    StringConstraints(
        # In clear only to this machine, as a sign-in proxy is.
        pattern=r"^(https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d{1,5})?/[!-~]*$",
        max_length=500,
    ),
]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a provider is asked, and what for. `device` or `authorize` is empty where the provider has none for mail.

    RFC 6749 §3.1 and §3.2, RFC 8628 §3.1.
    """

    token: str
    authorize: str
    device: str
    scope: str


_MICROSOFT: Final = "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/"
_GOOGLE: Final = Endpoints(
    token="https://oauth2.googleapis.com/token",  # noqa: S106 - an address
    authorize="https://accounts.google.com/o/oauth2/v2/auth",
    device="",  # Google gives no mail scope to devices.
    scope="https://mail.google.com/",
)


class OAuth(Section):
    """`[accounts.oauth]` or `[credentials.oauth]`: sign in by consent instead of a password.

    `client_id` is the operator's own registration at the provider; `client_secret_file` holds its secret where it has
    one. `token_file` is written by `oauth login` and kept anew at each renewal; its folder must be writable.
    `provider = "other"` needs `token_url`, `scope` and one of `authorize_url` and `device_url`.
    """

    provider: Literal["google", "microsoft", "other"]
    client_id: Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=300)]
    client_secret_file: AbsolutePath | None = None
    token_file: AbsolutePath
    mechanism: Literal["xoauth2", "oauthbearer"] = "xoauth2"
    tenant: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9.-]+$", max_length=100)] = "common"
    token_url: SecureUrl | None = None
    authorize_url: SecureUrl | None = None
    device_url: SecureUrl | None = None
    scope: Annotated[str, StringConstraints(pattern=r"^[!-~]+( [!-~]+)*$", max_length=1000)] | None = Field(
        default=None
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        own = (self.token_url, self.authorize_url, self.device_url)
        if self.provider == "other":
            if self.token_url is None or self.scope is None or not (self.authorize_url or self.device_url):
                raise ValueError('`provider = "other"` needs `token_url`, `scope`, and `authorize_url` or `device_url`')
        elif any(own):
            raise ValueError('addresses are given with `provider = "other"` only')
        return self

    @property
    def endpoints(self) -> Endpoints:
        """Where this provider is asked."""
        match self.provider:
            case "google":
                return _GOOGLE if self.scope is None else Endpoints(_GOOGLE.token, _GOOGLE.authorize, "", self.scope)
            case "microsoft":
                base = _MICROSOFT.format(tenant=self.tenant)
                # IMAP.AccessAsUser.All is the least there is: no provider has a read-only scope for IMAP.
                scope = self.scope or "https://outlook.office.com/IMAP.AccessAsUser.All offline_access"
                return Endpoints(f"{base}token", f"{base}authorize", f"{base}devicecode", scope)
            case _:
                assert self.token_url is not None, "checked above"
                return Endpoints(self.token_url, self.authorize_url or "", self.device_url or "", self.scope or "")


class OAuthFailure(Exception):  # noqa: N818 - a failure of the other side is no error of ours
    """No access token could be had. `reason`: the provider's error code (RFC 6749 §5.2), empty where it gave none."""

    def __init__(self, detail: str, fix: str, *, retryable: bool, reason: str = "") -> None:
        super().__init__(f"{detail} {fix}")
        self.detail, self.fix, self.retryable, self.reason = detail, fix, retryable, reason


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the provider gave. `expires_at`: seconds since 1970, when the access token ends."""

    access_token: SecretStr
    refresh_token: SecretStr
    expires_at: int


class TokenFile:
    """The file of one consent: 0600, replaced whole, so that a rotated refresh token is never half written or lost.

    Raises `ConfigurationError` where it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file against other threads and processes: a refresh token may be good for one use only."""
        lock = self._path.with_name(f"{self._path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> Tokens:
        """Return what is kept. Raises `ConfigurationError` where nothing usable is there."""
        try:
            with open(self._path, "rb", opener=_own_file) as file:
                if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise ConfigurationError(
                        str(self._path), "others can read it.", f"Close it: chmod 600 {self._path}; then sign in anew."
                    )
                octets = file.read(_MAX_ANSWER_OCTETS)
        except FileNotFoundError:
            raise ConfigurationError(
                str(self._path), "nobody has signed in yet.", "Sign in once: `oauth login`, as this user."
            ) from None
        except OSError as error:
            raise self._unusable(error) from None
        try:
            kept = json.loads(octets)
            return Tokens(SecretStr(kept["access_token"]), SecretStr(kept["refresh_token"]), int(kept["expires_at"]))
        except (ValueError, KeyError, TypeError):
            raise ConfigurationError(
                str(self._path), "is no token file.", "Remove it, and sign in once: `oauth login`."
            ) from None

    def write(self, tokens: Tokens) -> None:
        """Replace the file; when this returns, it is on the disk."""
        kept = {
            "access_token": tokens.access_token.get_secret_value(),
            "refresh_token": tokens.refresh_token.get_secret_value(),
            "expires_at": tokens.expires_at,
        }
        try:
            replace_private(self._path, json.dumps(kept).encode())
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            str(self._path),
            f"cannot be used: {error.strerror}.",
            "Name a file in a folder that this user owns, such as the one of its database.",
        )


def access_token(oauth: OAuth, now: Callable[[], float]) -> SecretStr:
    """Return an access token that has minutes to live, renewed first where needed.

    `now` gives seconds since 1970. Raises `OAuthFailure`, and `ConfigurationError` for the files.
    """
    file = TokenFile(oauth.token_file)
    kept = file.read()
    if kept.expires_at - _EARLY_SECONDS > now():
        return kept.access_token
    with file.locked():
        kept = file.read()  # another thread may have renewed it meanwhile
        if kept.expires_at - _EARLY_SECONDS > now():
            return kept.access_token
        renewed = ask_for_tokens(
            oauth,
            {"grant_type": "refresh_token", "refresh_token": kept.refresh_token.get_secret_value()},
            now,
            kept.refresh_token,
        )
        # Kept before it is used: where the provider rotates, the old refresh token is dead already.
        file.write(renewed)
        return renewed.access_token


def ask_for_tokens(
    oauth: OAuth, grant: Mapping[str, str], now: Callable[[], float], kept_refresh_token: SecretStr | None = None
) -> Tokens:
    """Ask the token endpoint for one grant (RFC 6749 §5). Raises `OAuthFailure`."""
    asked_at = now()
    status, answer = post_form(oauth.endpoints.token, {**grant, **client_fields(oauth)})
    access, refresh = _token(answer.get("access_token")), _token(answer.get("refresh_token"))
    if status != http.HTTPStatus.OK or access is None:
        raise refusal(status, answer)
    if refresh is not None:
        refresh_token = refresh
    elif kept_refresh_token is not None:
        refresh_token = kept_refresh_token
    else:
        raise OAuthFailure(
            "The provider gave no refresh token.",
            "Let the registration ask for offline access, and sign in anew.",
            retryable=False,
        )
    lifetime = answer.get("expires_in")
    seconds = int(lifetime) if isinstance(lifetime, int | float | str) and str(lifetime).isdigit() else 0
    ends = int(asked_at) + (seconds or _DEFAULT_LIFETIME_SECONDS)
    return Tokens(access, refresh_token, ends)


def client_fields(oauth: OAuth) -> dict[str, str]:
    """Return the fields that name the client, with its secret where it has one (RFC 6749 §2.3.1)."""
    fields = {"client_id": oauth.client_id}
    if oauth.client_secret_file is not None:
        secret = read_secret(oauth.client_secret_file, None, "[oauth] client_secret_file")
        fields["client_secret"] = secret.get_secret_value()
    return fields


def refusal(status: int, answer: Mapping[str, Any]) -> OAuthFailure:
    """Return the failure for an answer without a token: the provider's own reason, printable and short."""
    error, words = _word(answer.get("error")), _word(answer.get("error_description"))
    said = f"HTTP {status}: {error or 'no reason given'}{f' ({words})' if words else ''}"
    if error == "invalid_grant":
        return OAuthFailure(
            f"The provider takes back the consent, or it ran out ({said}).",
            "Sign in anew: `oauth login`.",
            retryable=False,
            reason=error,
        )
    if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR or status == http.HTTPStatus.TOO_MANY_REQUESTS:
        return OAuthFailure(
            f"The provider has no token now ({said}).", "It is tried again by itself.", retryable=True, reason=error
        )
    return OAuthFailure(
        f"The provider refuses the client ({said}).",
        "Mend `client_id`, `client_secret_file`, `tenant` or `scope`: they are as registered at the provider.",
        retryable=False,
        reason=error,
    )


def post_form(url: str, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
    """Send a form and return (status, JSON object); follows no redirect. Raises `OAuthFailure`."""
    at = urlsplit(url)
    host = at.hostname or ""
    secure = at.scheme == "https"
    connection: http.client.HTTPConnection = (
        http.client.HTTPSConnection(host, at.port, timeout=TOKEN_SECONDS, context=ssl.create_default_context())
        if secure
        else http.client.HTTPConnection(host, at.port, timeout=TOKEN_SECONDS)
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    try:
        connection.request("POST", at.path + (f"?{at.query}" if at.query else ""), urlencode(fields), headers)
        response = connection.getresponse()
        octets = response.read(_MAX_ANSWER_OCTETS + 1)
        answer = json.loads(octets) if len(octets) <= _MAX_ANSWER_OCTETS else None
    except ssl.SSLCertVerificationError as error:
        raise OAuthFailure(
            f"The certificate of {host} is not trusted ({error.verify_message}).",
            "Look at the clock and at the machine's list of authorities.",
            retryable=True,
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise OAuthFailure(
            f"No answer from {host} ({type(error).__name__}).", "It is tried again by itself.", retryable=True
        ) from None
    except ValueError:
        answer = None
    finally:
        connection.close()
    return (response.status, answer) if isinstance(answer, dict) else (response.status, {})


def _token(value: object) -> SecretStr | None:
    # RFC 6749 §A.12 and §A.17: printable ASCII. Anything else could end a line of SASL.
    is_token = isinstance(value, str) and value != "" and all(" " <= character <= "~" for character in value)
    return SecretStr(str(value)) if is_token else None


def _own_file(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _word(value: object) -> str:
    # A provider's words end in a terminal and in a log: printable ASCII, the first line, and not many.
    if not isinstance(value, str):
        return ""
    line = value.split("\n", 1)[0].strip()
    return "".join(character if " " <= character <= "~" else "?" for character in line)[:200]
