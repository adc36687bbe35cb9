"""One provider of tokens: when it renews, what it keeps while its source is away, and what it says of a bad token."""

from __future__ import annotations

import base64
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.errors import AuthenticationFailed, ConnectError, ProfileError
from kit.lab.process import wait_until
from kit.profile.security import token_sources
from kit.profile.security.refusals import described_token
from kit.profile.security.secret import Secret, SecretReference
from kit.profile.security.settings import KafkaSecurity
from kit.profile.security.token import Token
from kit.profile.security.token_sources import source_of
from kit.profile.security.tokens import UNKNOWN_LIFE_S, TokenProvider, provider_of
from tests.servers.issuer import SECRET, Issuer


class Source:
    """Numbered tokens of ``life_s``; ``problem`` is raised in their place."""

    def __init__(self, life_s: float | None = 100.0) -> None:
        self.now, self.life_s, self.n, self.problem = 1_000.0, life_s, 0, None

    def __call__(self) -> Token:
        if self.problem is not None:
            raise self.problem
        self.n += 1
        return Token(Secret(f"token-{self.n}"), None if self.life_s is None else self.now + self.life_s)

    def provider(self) -> TokenProvider:
        return TokenProvider(self, lambda: self.now)


def test_a_token_is_kept_for_four_fifths_of_its_life():
    source = Source()
    provider = source.provider()
    assert provider.token() == Token(Secret("token-1"), 1_100.0)
    source.now = 1_079.0
    assert provider.token().value == "token-1"
    source.now = 1_080.0
    assert provider.token() == Token(Secret("token-2"), 1_180.0)


def test_a_renewal_that_fails_leaves_the_token_in_hand_until_it_ends():
    source = Source()
    provider = source.provider()
    provider.token()
    source.now, source.problem = 1_090.0, ConnectError("away")
    assert provider.token().value == "token-1"
    source.now = 1_100.0
    with pytest.raises(ConnectError, match="away"):
        provider.token()


def test_a_token_of_unknown_end_is_asked_for_again_soon():
    source = Source(life_s=None)
    provider = source.provider()
    assert provider.token().expires_at_s == 1_000.0 + UNKNOWN_LIFE_S
    source.now += UNKNOWN_LIFE_S
    assert provider.token().value == "token-2"


def test_threads_that_ask_together_make_one_request():
    source = Source()
    provider, barrier = source.provider(), threading.Barrier(8)

    def ask(_: int) -> str:
        barrier.wait(10)
        return provider.token().value

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(8))) == {"token-1"}
    assert source.n == 1


@pytest.mark.parametrize("text", ["a.b", "a.b.c", "a.e30.c", "a.W10.c", "a.\u00ff.c", ""])
def test_claims_of_what_is_no_jwt_are_empty(text):
    assert Token(Secret(text)).claims == {}


def login(**keys) -> KafkaSecurity:
    return KafkaSecurity(protocol="SASL_SSL", mechanism="OAUTHBEARER", **keys)


def test_the_token_endpoint_is_asked_with_the_scope_and_never_follows_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("S", SECRET)
    with Issuer(tmp_path) as issuer:
        keys = {"client_id": "an n", "client_secret": SecretReference(env="S"), "scope": "kafka all"}
        source = source_of(login(token_url=issuer.token_url, **keys))
        assert source().claims["sub"] == "an n"
        issuer.answer = lambda *_: (302, {})
        with pytest.raises(AuthenticationFailed, match="HTTP 302"):
            source()
        issuer.answer = lambda *_: (200, {"token": "x"})
        with pytest.raises(AuthenticationFailed, match="without an access_token"):
            source()
        issuer.answer = lambda *_: (400, {"error": SECRET})
        with pytest.raises(AuthenticationFailed, match=r"\(HTTP 400\)"):
            source()
    with pytest.raises(ConnectError, match="did not answer"):
        source()


@pytest.mark.parametrize(
    ("command", "kind", "said"),
    [
        (("sh", "-c", "echo secret; exit 3"), AuthenticationFailed, "ended with exit code 3 and a line of output"),
        (("sh", "-c", "echo secret >&2"), AuthenticationFailed, "exit code 0 and no line"),
        (("printf", "\\n \\n"), AuthenticationFailed, "exit code 0 and no line"),
        (("true",), AuthenticationFailed, "exit code 0 and no line"),
        (("/no/such/program",), ProfileError, "can't be started"),
    ],
)
def test_a_command_that_gives_no_token_is_named_and_its_output_is_not(command, kind, said):
    with pytest.raises(kind, match=said) as caught:
        source_of(login(token_command=command))()
    assert "secret" not in str(caught.value)


def test_a_token_file_is_read_again(tmp_path: Path):
    file = tmp_path / "token"
    source = source_of(login(token=SecretReference(file=file)))
    for text in ("one", "two"):
        file.write_text(f" {text}\n")
        assert source().value == text
    file.write_text("")
    with pytest.raises(ProfileError, match=r"first line of the profile's secret file .* is empty"):
        TokenProvider(source).token()


def test_a_token_file_that_is_empty_while_it_is_replaced_leaves_the_token_in_hand(tmp_path: Path):
    now, file = 1_000.0, tmp_path / "token"
    file.write_text("one\n")
    provider = TokenProvider(source_of(login(token=SecretReference(file=file))), lambda: now)
    assert provider.token().value == "one"
    now += UNKNOWN_LIFE_S - 1
    file.write_text("")
    assert provider.token().value == "one"
    file.write_text("two\n")
    assert provider.token().value == "two"


@pytest.mark.parametrize(
    "text", ['{"access_token":"secret"}', "Bearer secret", '"secret"', "secr\u00e9t", "a\x01auth=b"]
)
def test_a_wrong_bearer_token_is_refused_before_a_broker_sees_it(tmp_path: Path, text: str):
    (tmp_path / "token").write_text(text, encoding="utf-8")
    with pytest.raises(AuthenticationFailed, match="must give the token alone") as caught:
        TokenProvider(source_of(login(token=SecretReference(file=tmp_path / "token")))).token()
    assert "secr" not in str(caught.value)


def test_a_command_that_hangs_ends_with_all_that_it_started(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(token_sources, "COMMAND_TIMEOUT_S", 0.5)
    command = ("sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; echo secret; wait")
    with pytest.raises(AuthenticationFailed, match="did not end, or did not close its output") as caught:
        source_of(login(token_command=command))()
    assert "secret" not in str(caught.value)
    started = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    wait_until(lambda: not started.exists() or "Z (zombie)" in (started / "status").read_text(), "its end", 10)


@pytest.mark.parametrize("expires_at_s", [1e999, float("nan"), 1.7e12, 10**400])
def test_an_end_that_is_no_time_neither_lasts_for_ever_nor_breaks_a_message(expires_at_s):
    token = TokenProvider(lambda: Token(Secret("t"), expires_at_s), lambda: 1_000.0).token()
    assert token.expires_at_s in (1_000.0 + UNKNOWN_LIFE_S, 1.7e12)
    claims = base64.urlsafe_b64encode(b'{"iss":"i","exp":1700000000000}').decode()
    assert "s after 1970" in described_token(Token(Secret(f"a.{claims}.c"), 1.7e12))


def test_an_answer_that_is_no_http_is_one_error(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("S", SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        answered = threads.submit(answer)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/token"
        with pytest.raises(ConnectError, match="did not answer"):
            source_of(login(token_url=url, client_id="ann", client_secret=SecretReference(env="S")))()
        answered.result(10)


def test_no_proxy_gets_the_client_secret_over_http(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("S", SECRET)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with Issuer(tmp_path) as issuer:
        keys = {"client_id": "ann", "client_secret": SecretReference(env="S")}
        assert source_of(login(token_url=issuer.token_url, **keys))().claims["sub"] == "ann"


def test_two_logins_of_one_process_have_each_its_own_token(tmp_path: Path):
    for name in ("ann", "bob"):
        (tmp_path / name).write_text(f"{name}\n")
    logins = {name: login(token=SecretReference(file=tmp_path / name)) for name in ("ann", "bob")}
    for _ in range(2):
        assert {name: provider_of(each).token().value for name, each in logins.items()} == {"ann": "ann", "bob": "bob"}
    provider_of.cache_clear()


@pytest.mark.parametrize("text", ["", "\n", "\nsecret\n"])
def test_an_empty_secret_is_the_profiles_error(tmp_path: Path, monkeypatch, text: str):
    """Clients take an empty password for none, or crash."""
    (tmp_path / "password").write_text(text)
    with pytest.raises(ProfileError, match=r"first line .* is empty"):
        SecretReference(file=tmp_path / "password").reveal()
    monkeypatch.setenv("P", "")
    with pytest.raises(ProfileError, match="the environment variable P is empty"):
        SecretReference(env="P").reveal()


def test_a_secret_file_is_read_as_editors_write_it(tmp_path: Path):
    (tmp_path / "password").write_bytes(b"\xef\xbb\xbfsecret\r\n")
    assert SecretReference(file=tmp_path / "password").reveal() == "secret"
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ProfileError, match="not a regular file"):
        SecretReference(file=tmp_path / "fifo").reveal()


def test_a_secret_file_that_is_no_text_is_not_quoted(tmp_path: Path):
    (tmp_path / "token").write_bytes(b"\xff\xfesecret")
    with pytest.raises(ProfileError, match=r"is no text in UTF-8") as caught:
        SecretReference(file=tmp_path / "token").reveal()
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_a_token_url_with_a_password_is_refused():
    """Messages name the URL."""
    secret = SecretReference(env="CLIENT_SECRET")
    with pytest.raises(ValueError, match="must not hold a user or a password") as caught:
        KafkaSecurity(
            protocol="SASL_SSL",
            mechanism="OAUTHBEARER",
            token_url="https://ann:pw@issuer.test/token",
            client_id="ann",
            client_secret=secret,
        )
    assert "ann:pw" not in str(caught.value)
