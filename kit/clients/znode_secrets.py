"""Redact the secrets of a znode's data and access list before any reader sees them.

Kafka keeps SCRAM credentials in ``/config/users``, enciphered passwords among the settings in ``/config/brokers``, and
delegation tokens in ``/delegation_token``, below any chroot. Kafka's other znodes hold no secret and stay exact. A
stranger's znode may hold anything: what resembles a secret there is redacted as in any foreign text.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kit.clients.values import json_in
from kit.clients.znode_columns import column, flags, numbers, octets
from kit.text.fingerprints import Hide, stars
from kit.text.secret_settings import is_secret_setting
from kit.text.withholding import REDACTED, without_secrets

_SECRETIVE = r"(?:^|/)(?:config/(?:users|brokers)/|delegation_token/)"
_NAME, _NUMBER = "[^/]+", "[0-9]+"
_OF_KAFKA = (
    "admin",
    f"admin/delete_topics(?:/{_NAME})?",
    "admin/(?:reassign_partitions|preferred_replica_election)",
    "brokers",
    f"brokers/ids(?:/{_NUMBER})?",
    "brokers/seqid",
    "brokers/topics",
    f"brokers/topics/{_NAME}(?:/partitions(?:/{_NUMBER}(?:/state)?)?)?",
    "cluster(?:/id)?",
    f"config(?:/(?:topics|brokers|users|clients|ips|client-metrics|groups)(?:/{_NAME})?)?",
    f"config/users/{_NAME}/clients(?:/{_NAME})?",
    f"config/changes(?:/config_change_{_NUMBER})?",
    f"consumers(?:/{_NAME}(?:/(?:ids|owners|offsets)(?:/{_NAME}){{0,2}})?)?",
    "controller|controller_epoch|feature|latest_producer_id_block|migration",
    "delegation_token",
    f"delegation_token/tokens(?:/{_NAME})?",
    f"delegation_token/token_changes(?:/token_change_{_NUMBER})?",
    f"isr_change_notification(?:/isr_change_{_NUMBER})?",
    f"log_dir_event_notification(?:/log_dir_event_{_NUMBER})?",
    f"(?:kafka-acl|kafka-acl-extended/{_NAME})(?:/{_NAME}(?:/(?s:.+))?)?",
    "kafka-acl-extended",
    f"(?:kafka-acl-changes|kafka-acl-extended-changes)(?:/acl_changes_{_NUMBER})?",
)
"""Kafka's znodes, whole, below its chroot (``kafka.zk.ZkData`` of 3.9.1). A resource's name may hold slashes."""
_AT_THE_CHROOT = rf"\A/(?:{'|'.join(_OF_KAFKA)})\z"
_AT_ANY_CHROOT = rf"\A(?:/[^/]+)*/(?:{'|'.join(_OF_KAFKA)})\z"
"""ZooKeeper's files don't report where a chroot begins."""
_USER, _BROKER = re.compile(r"(?:^|/)config/users/"), re.compile(r"(?:^|/)config/brokers/")
_PART = re.compile(r"(salt|stored_key|server_key)=([^,]*)")


def shown_data(path: str, data: bytes | None, hide: Hide = stars, strangers: Hide | None = None) -> bytes | None:
    """A znode's data as it may be shown.

    ``strangers``: the replacement of the data of another application's znode, all of it, and ``path`` begins at Kafka's
    chroot. None: there only what resembles a secret is redacted, and Kafka's chroot may be anywhere in the path.
    """
    if not data:
        return data
    if strangers is not None and not _matches(_AT_THE_CHROOT, path):
        return strangers(data.decode("latin-1")).encode("latin-1")
    if re.search(_SECRETIVE, path):
        return _of_kafka(path, data, hide)
    return data if _matches(_AT_ANY_CHROOT, path) else _of_stranger(data)


def _matches(pattern: str, path: str) -> bool:
    return _compiled(pattern).search(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Arrow's engine (RE2) writes the end of a text in another way."""
    return re.compile(pattern.replace(r"\z", r"\Z"))


def shown_column(paths: pa.Array, data: pa.Array, hide: Hide = stars, strangers: Hide | None = None) -> pa.Array:
    """The same for whole columns (string, binary)."""
    open_ones = _AT_ANY_CHROOT if strangers is None else _AT_THE_CHROOT
    is_open = pc.and_not(pc.match_substring_regex(paths, open_ones), pc.match_substring_regex(paths, _SECRETIVE))
    at = numbers(pc.indices_nonzero(pc.invert(is_open)), "u8")
    if not len(at):
        return data
    these = column(pa.int64(), at)
    some = zip(paths.take(these).to_pylist(), data.take(these).to_pylist())
    shown = octets([shown_data(path, each, hide, strangers) for path, each in some], data.type)
    mask = np.zeros(len(paths), np.bool_)
    mask[at] = True
    return pc.replace_with_mask(data, flags(mask), shown)


def _of_kafka(path: str, data: bytes, hide: Hide) -> bytes:
    value = json_in(data)
    if not isinstance(value, dict):
        return hide(data.decode("latin-1")).encode("latin-1")
    if _USER.search(path) or _BROKER.search(path):
        config = value.get("config")
        if not isinstance(config, dict):
            return hide(data.decode("latin-1")).encode("latin-1")
        shown = _scram if _USER.search(path) else _setting
        value["config"] = {key: shown(key, each, hide) for key, each in config.items()}
    elif value.get("hmac"):
        value["hmac"] = hide(str(value["hmac"]))
    return data if value == json_in(data) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _scram(key: str, value: Any, hide: Hide) -> Any:
    """Redact a credential, except its iterations; any other value of a user is a quota, if it is a number."""
    text = str(value)
    if not key.upper().startswith("SCRAM"):
        return value if re.fullmatch(r"[\d.eE+-]*", text) else hide(text)
    parts = text.split(",")
    is_known = all(re.fullmatch(r"(?:salt|stored_key|server_key)=[^,]*|iterations=\d+", part) for part in parts)
    return _PART.sub(lambda part: f"{part[1]}={hide(part[2])}", text) if is_known else hide(text)


def _setting(key: str, value: Any, hide: Hide) -> Any:
    return hide(str(value)) if value and is_secret_setting(key) else value


def _of_stranger(data: bytes) -> bytes:
    """Byte for byte the same but for secrets; no text is decoded for it."""
    return without_secrets(data.decode("latin-1")).encode("latin-1")


_PERMISSIONS = "rwcda"
"""ZooKeeper's bits: read 1, write 2, create 4, delete 8, admin 16."""


def acl_text(permissions: int, scheme: str, who: str) -> str:
    """``world:anyone:cdrwa``; of a digest only whose it is."""
    if scheme in ("digest", "super", "auth"):
        who = f"{who.partition(':')[0]}:{REDACTED}" if ":" in who else REDACTED
    elif scheme not in ("world", "sasl", "ip", "x509"):
        who = REDACTED
    letters = "".join(sorted(letter for bit, letter in enumerate(_PERMISSIONS) if permissions >> bit & 1))
    return f"{scheme}:{who}:{letters}"
