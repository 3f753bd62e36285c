"""Access tokens: renewed in time, rotated without loss, signed in for by device or browser, refused in plain words."""

from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

import agent_reader.__main__
import change_executor.__main__
from shared.oauth import OAuth, OAuthFailure, TokenFile, Tokens, access_token
from shared.oauth_sign_in import SIGN_IN_SECONDS, sign_in_by_browser, sign_in_by_device
from shared.settings import ConfigurationError
from tests.fakes.oauth_provider import OAuthProvider

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = 1_800_000_000.0


@pytest.fixture
def provider() -> Iterator[OAuthProvider]:
    with OAuthProvider() as running:
        yield running


def oauth(running: OAuthProvider, folder: Path, **changes: Any) -> OAuth:
    given: dict[str, Any] = {
        "provider": "other",
        "client_id": "client-1",
        "token_file": folder / "oauth.json",
        "token_url": f"{running.url}/token",
        "authorize_url": f"{running.url}/authorize",
        "device_url": f"{running.url}/device",
        "scope": "mail offline_access",
    }
    return OAuth(**(given | changes))


def consent(provider: OAuthProvider, settings: OAuth, ends: float) -> Tokens:
    made = provider.new_tokens()
    kept = {"access_token": made["access_token"], "refresh_token": made["refresh_token"], "expires_at": int(ends)}
    descriptor = os.open(settings.token_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(kept, file)
    return TokenFile(settings.token_file).read()


def test_a_token_with_minutes_to_live_is_used_without_asking(provider: OAuthProvider, tmp_path: Path) -> None:
    settings = oauth(provider, tmp_path)
    kept = consent(provider, settings, NOW + 121)
    assert kept.access_token == access_token(settings, lambda: NOW)
    assert [] == provider.asked


def test_one_that_ends_soon_is_renewed_and_the_rotated_refresh_token_is_kept(
    provider: OAuthProvider, tmp_path: Path
) -> None:
    secret = tmp_path / "client-secret"
    secret.write_text("s3cret\n")
    secret.chmod(0o400)
    settings = oauth(provider, tmp_path, client_secret_file=secret)
    kept = consent(provider, settings, NOW + 119)
    renewed = access_token(settings, lambda: NOW)
    on_disk = TokenFile(settings.token_file).read()
    assert kept.access_token != renewed == on_disk.access_token
    assert {on_disk.refresh_token.get_secret_value()} == provider.refresh_tokens
    assert int(NOW) + 3600 == on_disk.expires_at
    assert 0o600 == settings.token_file.stat().st_mode & 0o777
    assert [("client-1", "s3cret")] == [(each["client_id"], each["client_secret"]) for each in provider.asked]


def test_many_threads_renew_once_since_a_refresh_token_is_good_once(provider: OAuthProvider, tmp_path: Path) -> None:
    settings = oauth(provider, tmp_path)
    consent(provider, settings, NOW)
    together = threading.Barrier(8)

    def one() -> str:
        together.wait(20)
        return access_token(settings, lambda: NOW).get_secret_value()

    with ThreadPoolExecutor(8) as pool:
        found = {future.result() for future in [pool.submit(one) for _ in range(8)]}
    assert 1 == len(found)
    assert 1 == len(provider.asked)


def test_a_consent_taken_back_says_that_a_person_signs_in_anew(provider: OAuthProvider, tmp_path: Path) -> None:
    settings = oauth(provider, tmp_path)
    kept = consent(provider, settings, NOW)
    provider.refresh_tokens.clear()
    with pytest.raises(OAuthFailure) as failure:
        access_token(settings, lambda: NOW)
    assert ("invalid_grant", False) == (failure.value.reason, failure.value.retryable)
    assert "expired or revoked" in failure.value.detail
    assert "oauth login" in failure.value.fix
    assert kept.refresh_token == TokenFile(settings.token_file).read().refresh_token


@pytest.mark.parametrize(
    ("status", "answer", "retryable"),
    [
        (503, {}, True),
        (429, {"error": "slow_down"}, True),
        (400, {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid secret.\nTrace ID: 1"}, False),
        (200, {"access_token": 5}, False),
        (200, {"access_token": "a\x1b[2J"}, False),
        (302, {"error": "\x1b]0;evil\x07"}, False),
    ],
)
def test_a_provider_that_refuses_is_named_in_printable_words(
    provider: OAuthProvider, tmp_path: Path, status: int, answer: dict[str, Any], retryable: bool
) -> None:
    settings = oauth(provider, tmp_path)
    consent(provider, settings, NOW)
    kept = settings.token_file.read_bytes()
    provider.refusing = (status, answer)
    if answer.get("access_token") == "a\x1b[2J":
        answer["refresh_token"] = ""
    with pytest.raises(OAuthFailure) as failure:
        access_token(settings, lambda: NOW)
    assert retryable == failure.value.retryable
    assert f"{failure.value}".isprintable()
    assert kept == settings.token_file.read_bytes()


def test_no_answer_is_worth_another_try(provider: OAuthProvider, tmp_path: Path) -> None:
    settings = oauth(provider, tmp_path, token_url="http://127.0.0.1:9/token")
    consent(provider, settings, NOW)
    with pytest.raises(OAuthFailure) as failure:
        access_token(settings, lambda: NOW)
    assert failure.value.retryable


def test_tokens_are_never_shown(provider: OAuthProvider, tmp_path: Path) -> None:
    kept = consent(provider, oauth(provider, tmp_path), NOW)
    assert kept.access_token.get_secret_value() not in f"{kept!r} {kept}"
    assert kept.refresh_token.get_secret_value() not in f"{kept!r} {kept}"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _: None, "nobody has signed in"),
        (lambda path: path.write_text("{}") and path.chmod(0o600), "no token file"),
        (lambda path: path.write_text("[1]") and path.chmod(0o600), "no token file"),
        (lambda path: path.write_text("{}") and path.chmod(0o644), "others can read"),
        (lambda path: path.symlink_to("/etc/passwd"), "cannot be used"),
        (lambda path: path.mkdir(), "cannot be used"),
    ],
)
def test_a_token_file_that_is_none_is_the_operators_mistake(
    provider: OAuthProvider, tmp_path: Path, make: Any, words: str
) -> None:
    settings = oauth(provider, tmp_path)
    make(settings.token_file)
    with pytest.raises(ConfigurationError, match=words):
        access_token(settings, lambda: NOW)


def test_a_sign_in_by_device_shows_the_code_and_waits_as_told(provider: OAuthProvider, tmp_path: Path) -> None:
    provider.pending = ["authorization_pending", "slow_down", "authorization_pending"]
    said: list[str] = []
    waited: list[float] = []
    tokens = sign_in_by_device(oauth(provider, tmp_path), said.append, lambda: NOW + sum(waited), waited.append)
    assert tokens.access_token.get_secret_value() in provider.live
    assert [f"Open {provider.url}/enter in any browser and enter the code ABCD-EFGH"] == said
    assert [1, 1, 6, 6] == waited


@pytest.mark.parametrize("reason", ["access_denied", "expired_token"])
def test_a_person_who_says_no_ends_the_sign_in_by_device(provider: OAuthProvider, tmp_path: Path, reason: str) -> None:
    provider.pending = [reason]
    with pytest.raises(OAuthFailure, match=reason):
        sign_in_by_device(oauth(provider, tmp_path), lambda _: None, lambda: NOW, lambda _: None)


def test_a_device_code_that_nobody_enters_ends(provider: OAuthProvider, tmp_path: Path) -> None:
    provider.pending = ["authorization_pending"] * 10_000
    waited: list[float] = []
    with pytest.raises(OAuthFailure, match="in time"):
        sign_in_by_device(oauth(provider, tmp_path), lambda _: None, lambda: NOW + sum(waited), waited.append)
    assert sum(waited) <= SIGN_IN_SECONDS


def test_a_sign_in_by_browser_comes_back_with_the_state_it_was_sent_with(
    provider: OAuthProvider, tmp_path: Path
) -> None:
    answers: list[bytes] = []
    threads: list[threading.Thread] = []

    def get(url: str) -> None:
        with urllib.request.urlopen(url, timeout=20) as response:
            answers.append(response.read())

    def browser(asked: dict[str, list[str]]) -> None:
        back, state = asked["redirect_uri"][0], asked["state"][0]
        provider.challenges["code-1"] = asked["code_challenge"][0]
        get(f"{back}?code=stolen&state=guessed")
        get(f"{back}favicon.ico")
        get(f"{back}?code=code-1&state={state}")

    def say(words: str) -> None:
        address = urlsplit(words.removeprefix("Open "))
        thread = threading.Thread(target=browser, args=(parse_qs(address.query),))
        thread.start()
        threads.append(thread)

    tokens = sign_in_by_browser(oauth(provider, tmp_path), say, lambda: NOW, os.urandom)
    for thread in threads:
        thread.join(20)
    assert tokens.access_token.get_secret_value() in provider.live
    assert ["code-1"] == [each["code"] for each in provider.asked]
    assert [b"This is not", b"This is not", b"Signed in. "] == [each[:11] for each in answers]


def test_a_browser_that_brings_a_refusal_ends_the_sign_in(provider: OAuthProvider, tmp_path: Path) -> None:
    threads: list[threading.Thread] = []

    def say(words: str) -> None:
        asked = parse_qs(urlsplit(words).query)
        back = f"{asked['redirect_uri'][0]}?error=access_denied&state={asked['state'][0]}"
        thread = threading.Thread(target=lambda: urllib.request.urlopen(back, timeout=20).close())
        thread.start()
        threads.append(thread)

    with pytest.raises(OAuthFailure, match="access_denied"):
        sign_in_by_browser(oauth(provider, tmp_path), say, lambda: NOW, os.urandom)
    threads[0].join(20)


READER = """
[store]
url = "sqlite:///{folder}/index"
[[accounts]]
id = "shop"
host = "localhost"
user = "reader"
[accounts.oauth]
{oauth}
"""
EXECUTOR = """
[review]
allow_uids = [0]
[journal]
url = "sqlite:///{folder}/journal.db"
[[credentials]]
id = "shop"
host = "localhost"
user = "executor"
[credentials.oauth]
{oauth}
[[queues]]
id = "support"
credential = "shop"
account = "shop"
incoming = "Incoming"
[queues.to.processed]
mailbox = "Processed"
"""


@pytest.mark.parametrize(
    ("command", "text"), [(agent_reader.__main__.app, READER), (change_executor.__main__.app, EXECUTOR)]
)
def test_each_house_signs_in_with_a_command_of_its_own(
    provider: OAuthProvider, tmp_path: Path, command: Any, text: str
) -> None:
    own = {
        "provider": "other", "client_id": "client-1", "token_file": str(tmp_path / "oauth.json"), "scope": "mail",
        "token_url": f"{provider.url}/token", "device_url": f"{provider.url}/device",
    }  # fmt: skip
    config = tmp_path / "house.toml"
    config.write_text(
        text.format(folder=tmp_path, oauth="\n".join(f"{key} = {json.dumps(value)}" for key, value in own.items()))
    )
    done = CliRunner().invoke(command, ["oauth", "login", "shop", "--config", str(config)])
    assert 0 == done.exit_code, done.output
    kept = TokenFile(tmp_path / "oauth.json").read()
    assert kept.access_token.get_secret_value() in provider.live
    assert kept.access_token.get_secret_value() not in done.output
    for arguments, words in (
        (["nobody"], "no login `nobody`"),
        (["shop", "--browser"], "no sign-in page"),
        (["shop", "--config", str(tmp_path / "none.toml")], "no such file"),
    ):
        refused = CliRunner().invoke(command, ["oauth", "login", "--config", str(config), *arguments])
        assert 2 == refused.exit_code
        assert words in refused.output
    assert kept == TokenFile(tmp_path / "oauth.json").read()


@pytest.mark.parametrize(
    "changes",
    [
        {"token_url": None},
        {"scope": None},
        {"authorize_url": None, "device_url": None},
        {"token_url": "http://login.example.org/token"},
        {"token_url": "https://login.example.org"},
        {"provider": "google"},
        {"client_id": "has blank"},
        {"token_file": "relative.json"},
        {"tenant": "a/b"},
    ],
)
def test_a_mistyped_table_is_refused(provider: OAuthProvider, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        oauth(provider, tmp_path, **changes)


@pytest.mark.parametrize("name", ["google", "microsoft"])
def test_the_known_providers_are_asked_over_tls_for_imap_and_a_refresh_token(name: Any, tmp_path: Path) -> None:
    at = OAuth(provider=name, client_id="c", token_file=tmp_path / "t", tenant="contoso.example").endpoints
    assert all(each.startswith("https://") for each in (at.token, at.authorize))
    assert ("https://mail.google.com/" if name == "google" else "IMAP.AccessAsUser.All offline_access") in at.scope
    assert ("contoso.example" in at.token) == (name == "microsoft") == bool(at.device)
