"""The token for Amazon MSK, verified as a broker does: the signature (SigV4), its scope, and its end."""

from __future__ import annotations

import base64
import hashlib
import hmac
import sys
import time
from datetime import UTC, datetime
from importlib.util import find_spec
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from kit.errors import AuthenticationFailed, SetupError
from kit.profile.security.settings import KafkaSecurity
from kit.profile.security.token_sources import source_of
from kit.profile.security.tokens import TokenProvider

LOGIN = KafkaSecurity(protocol="SASL_SSL", mechanism="AWS_MSK_IAM", region="eu-west-1")
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
HAS_SIGNER = find_spec("aws_msk_iam_sasl_signer") is not None and find_spec("botocore") is not None
with_signer = pytest.mark.skipif(not HAS_SIGNER, reason="AWS_MSK_IAM is not tried: the extra offramp[msk] is missing")


@pytest.fixture(autouse=True)
def no_other_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def signature(host: str, query: dict[str, str], secret: str) -> str:
    """SigV4 of a presigned GET: the AWS documentation's steps, with nothing of the signer's."""
    digest = hashlib.sha256
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    request = "\n".join(
        ["GET", "/", "&".join(map("=".join, pairs)), f"host:{host}", "", "host", digest(b"").hexdigest()]
    )
    scope = query["X-Amz-Credential"].split("/")[1:]
    text = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], "/".join(scope), digest(request.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.new(key, part.encode(), digest).digest()
    return hmac.new(key, text.encode(), digest).hexdigest()


@with_signer
@pytest.mark.parametrize("session", [None, "a session/token+="])
def test_the_token_is_a_signed_request_that_a_broker_can_verify(monkeypatch, session) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    if session is not None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", session)
    token = TokenProvider(source_of(LOGIN)).token()
    url = urlsplit(base64.urlsafe_b64decode(token.value + "==").decode())
    query = dict(parse_qsl(url.query))
    assert query.pop("User-Agent").startswith("aws-msk-iam-sasl-signer")  # It is added after the signature.
    signed = query.pop("X-Amz-Signature")
    assert url.hostname == "kafka.eu-west-1.amazonaws.com"
    assert (query["Action"], query.get("X-Amz-Security-Token")) == ("kafka-cluster:Connect", session)
    assert signature(url.hostname, query, SECRET) == signed
    assert signature(url.hostname, query, "another") != signed
    began = datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    assert abs(token.expires_at_s - began - int(query["X-Amz-Expires"])) <= 1
    assert token.expires_at_s > time.time()
    assert SECRET not in repr(token)


@with_signer
def test_missing_credentials_are_reported() -> None:
    with pytest.raises(AuthenticationFailed, match="No AWS credentials for region eu-west-1"):
        source_of(LOGIN)()


def test_without_the_extra_its_name_is_reported(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(SetupError, match=r"pip install 'offramp\[msk\]'"):
        source_of(LOGIN)()
