"""Redact the secrets of a metadata log before any reader sees the record.

KRaft keeps in the clear what ZooKeeper had encrypted or hidden: passwords among brokers' dynamic settings. Kafka's own
``RecordRedactor`` redacts the value of every setting whose type is PASSWORD or that it doesn't know; so does this.
A delegation token's record holds its id and no key: the key is made of the id and the brokers' secret.
"""

from __future__ import annotations

from typing import Any

from kit.text.fingerprints import Hide, stars
from kit.text.secret_settings import is_secret_setting

_CREDENTIAL = "UserScramCredential"
_PARTS = ("salt", "storedKey", "serverKey")
_WITHOUT_PASSWORDS = (2, 8, 16, 32)
"""Resource types (``ConfigResource.Type``): topic, broker logger, client metrics, group."""


def has_secrets(name: str) -> bool:
    """Return whether bytes of this record type may be secret."""
    return name in (_CREDENTIAL, "Config")


def without_secrets(name: str, body: dict[str, Any], hide: Hide = stars) -> dict[str, Any]:
    """The same fields; a secret that is there is hidden, one that isn't stays empty."""
    if name == _CREDENTIAL:
        return body | {part: hide(body[part]) for part in _PARTS if body[part]}
    if name == "Config" and body["value"] and is_secret_config(body["resourceType"], body["name"]):
        return body | {"value": hide(body["value"])}
    return body


def is_secret_config(resource_type: int, key: str) -> bool:
    """Return whether a setting's value is redacted: a broker's, unless Kafka knows it as dynamic and no password."""
    return resource_type not in _WITHOUT_PASSWORDS and is_secret_setting(key)
