"""An issuer of tokens on 127.0.0.1: the client credentials grant, and a file with its public key (JWKS)."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

AUDIENCE = "kafka"
ISSUER = "https://issuer.test"
SECRET = "s3cret+/ of the client"
NODE_SECRET = "node-secret"
"""Java's client does not encode a secret by default."""


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Issuer:
    """``life_s`` of each new token; ``claims`` are set over the usual ones; ``is_down``: every request fails (503)."""

    def __init__(self, folder: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.life_s = 3600.0
        self.claims: dict[str, Any] = {}
        self.is_down = False
        self.issued: list[str] = []
        self.jwks = folder / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [self._public()]}), encoding="utf-8")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Issuer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def token_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/token"

    def token(self, subject: str, **claims: Any) -> str:
        """A signed JWT. A claim of None is left out."""
        now = time.time()
        told = {"iss": ISSUER, "aud": AUDIENCE, "sub": subject, "iat": int(now), "exp": now + self.life_s}
        told = {name: value for name, value in (told | self.claims | claims).items() if value is not None}
        signed = f"{encoded(json.dumps(self._head).encode())}.{encoded(json.dumps(told).encode())}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return f"{signed}.{encoded(signature)}"

    @property
    def _head(self) -> dict[str, str]:
        return {"alg": "RS256", "kid": "one", "typ": "JWT"}

    def _public(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        values = {"n": numbers.n, "e": numbers.e}
        return {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig"} | {
            name: encoded(value.to_bytes((value.bit_length() + 7) // 8)) for name, value in values.items()
        }

    def answer(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and fields, as RFC 6749 has them; the client's id becomes the subject."""
        if self.is_down:
            return 503, {}
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if unquote_plus(secret) not in (SECRET, NODE_SECRET):
            return 401, {"error": "invalid_client", "error_description": f"not {secret}"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        self.issued.append(self.token(unquote_plus(client)))
        return 200, {"access_token": self.issued[-1], "token_type": "Bearer", "expires_in": self.life_s}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, fields = issuer.answer(self.headers.get("Authorization", ""), form)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(fields).encode())

            def log_message(self, *_: object) -> None:
                """Nothing: the test's output stays free."""

        return Handler
