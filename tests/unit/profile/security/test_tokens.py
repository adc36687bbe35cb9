"""One provider of tokens: when it renews, what it keeps while its source is away, and what it says of a bad token."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.errors import AuthenticationFailed, ConnectError, ProfileError
from kit.profile.security.secret import Secret, SecretReference
from kit.profile.security.settings import KafkaSecurity
from kit.profile.security.token import Token
from kit.profile.security.token_sources import source_of
from kit.profile.security.tokens import UNKNOWN_LIFE_S, TokenProvider
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
    with pytest.raises(AuthenticationFailed, match="The token is empty"):
        TokenProvider(source).token()


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
