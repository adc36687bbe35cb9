"""Sources of tokens: an issuer's token endpoint, a file or variable, a command, AWS credentials."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPException
from typing import Any
from urllib.parse import quote_plus, urlencode

from kit.errors import AuthenticationFailed, ConnectError, ProfileError, SetupError
from kit.profile.security.secret import Secret
from kit.profile.security.settings import AWS_MSK_IAM, KafkaSecurity
from kit.profile.security.tls_files import trusting
from kit.profile.security.token import Token

TIMEOUT_S = 10.0
COMMAND_TIMEOUT_S = 30.0
_LARGEST_ANSWER = 1 << 20


def source_of(security: KafkaSecurity) -> Callable[[], Token]:
    """Return what fetches a new token for this login; it raises as ``TokenProvider.token``."""
    if security.mechanism == AWS_MSK_IAM:
        return partial(_sign_for_msk, str(security.region))
    if security.token_url is not None:
        return partial(_ask_issuer, security)
    if security.token is not None:
        reference = security.token
        return lambda: Token(Secret(reference.reveal().strip()))
    return partial(_run, security.token_command)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the client secret to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _ask_issuer(security: KafkaSecurity) -> Token:
    """The client credentials grant (RFC 6749, 4.4), the client by HTTP Basic (2.3.1)."""
    assert security.token_url is not None
    assert security.client_secret is not None
    where = f"the token endpoint {security.token_url}"
    form = {"grant_type": "client_credentials"} | ({"scope": security.scope} if security.scope else {})
    login = f"{quote_plus(str(security.client_id))}:{quote_plus(security.client_secret.reveal())}"
    request = urllib.request.Request(security.token_url, urlencode(form).encode())
    request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    request.add_header("Accept", "application/json")
    asked_at = time.time()
    try:
        with _opener(security).open(request, timeout=TIMEOUT_S) as answer:
            body = answer.read(_LARGEST_ANSWER)
    except urllib.error.HTTPError as error:
        raise _refusal(security, where, error.code, _error_code(error.read(_LARGEST_ANSWER))) from None
    except (OSError, ValueError, HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise ConnectError(
            f"{where} did not answer ({reason}). Check token_url and the network; for a certificate of your own "
            "authority, set token_ca_file."
        ) from None
    fields = _json(body)
    token = fields.get("access_token")
    if not isinstance(token, str) or not token:
        raise AuthenticationFailed(f"{where} answered without an access_token. Check token_url.")
    life_s = fields.get("expires_in")
    return Token(Secret(token), asked_at + float(life_s) if isinstance(life_s, int | float) else None)


def _opener(security: KafkaSecurity) -> urllib.request.OpenerDirector:
    """A proxy gets no request of http: such a request holds the client secret, and is for this machine."""
    context = trusting("security.kafka.token_ca_file", security.token_ca_file)
    proxies = {scheme: at for scheme, at in urllib.request.getproxies().items() if scheme == "https"}
    by_proxy = urllib.request.ProxyHandler(proxies)
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), by_proxy, _NoRedirect)


def _refusal(security: KafkaSecurity, where: str, status: int, code: str) -> ConnectError:
    said = f"HTTP {status}{f', {code}' if code else ''}"
    if status >= 500:
        return ConnectError(f"{where} failed ({said}). Ask the people who run it, or try again later.")
    return AuthenticationFailed(
        f"{where} refused client {security.client_id!r} ({said}). Check client_id, client_secret and scope in "
        "security.kafka."
    )


def _error_code(body: bytes) -> str:
    """The registered code of RFC 6749, 5.2; no free text, which may quote the request."""
    code = _json(body).get("error")
    return code if isinstance(code, str) and code.isascii() and code.replace("_", "").isalpha() else ""


def _json(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _run(command: tuple[str, ...]) -> Token:
    """The first line with text that the command prints. Its output is shown nowhere: it may hold the token."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ProfileError(f"token_command {command[0]!r} can't be started: {error}. Check its path.") from None
    printed = _output(process, command[0])
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines() if line.strip()]
    if process.returncode != 0 or not lines:
        raise AuthenticationFailed(
            f"token_command {command[0]!r} ended with exit code {process.returncode} and "
            f"{'a' if lines else 'no'} line of output. Run it in a terminal to see why."
        )
    return Token(Secret(lines[0]))


def _output(process: subprocess.Popen[bytes], name: str) -> bytes:
    """Return the output of the command. If it takes too long, it ends with all processes that it started."""
    with process:
        try:
            return process.communicate(timeout=COMMAND_TIMEOUT_S)[0]
        except BaseException as error:  # Ctrl-C, too: it does not reach another session.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
    raise AuthenticationFailed(
        f"token_command {name!r} did not end, or did not close its output, within {COMMAND_TIMEOUT_S:g} s. Run it in a "
        "terminal to see why."
    )


def _sign_for_msk(region: str) -> Token:
    """A signed request for ``kafka-cluster:Connect``, as Amazon MSK takes it by OAUTHBEARER."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise SetupError(
            f"{AWS_MSK_IAM} needs the package aws-msk-iam-sasl-signer-python. Install it: pip install 'offramp[msk]'"
        ) from None
    try:
        token, expires_at_ms = MSKAuthTokenProvider.generate_auth_token(region)
    except Exception as error:  # noqa: BLE001 – botocore has no common base, and some of its messages show settings.
        raise AuthenticationFailed(
            f"No AWS credentials for region {region} could be used ({type(error).__name__}). Check AWS_PROFILE, the "
            "credentials file, or the role of this machine."
        ) from None
    return Token(Secret(token), expires_at_ms / 1000)
