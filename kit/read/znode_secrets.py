"""What of a znode's data and access list is a secret, and is withheld before anybody sees it.

Kafka keeps SCRAM credentials in ``/config/users``, enciphered passwords among the settings in ``/config/brokers``, and
delegation tokens in ``/delegation_token``, below any chroot. Kafka's other znodes hold no secret and stay exact. A
stranger's znode may hold anything: what looks like a secret there is withheld as in any foreign text.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kit.read.values import json_in
from kit.read.znode_columns import column, flags, numbers, octets
from kit.text.fingerprints import Hide, stars
from kit.text.secret_settings import is_secret_setting
from kit.text.withholding import WITHHELD, without_secrets

_SECRETIVE = r"(?:^|/)(?:config/(?:users|brokers)/|delegation_token/)"
_OF_KAFKA = (
    r"(?:^|/)(?:consumers|brokers|admin|cluster|config|controller|controller_epoch|migration|feature|kafka-acl|"
    r"kafka-acl-extended|kafka-acl-changes|kafka-acl-extended-changes|latest_producer_id_block|log_dir_event_notification|"
    r"isr_change_notification)(?:/|$)"
)
_PLAIN = ("/consumers/", "/brokers/", "/config/topics/", "/admin/")
_USER, _BROKER = re.compile(r"(?:^|/)config/users/"), re.compile(r"(?:^|/)config/brokers/")
_PART = re.compile(r"(salt|stored_key|server_key)=([^,]*)")


def shown_data(path: str, data: bytes | None, hide: Hide = stars) -> bytes | None:
    """A znode's data as it may be shown."""
    if not data:
        return data
    if re.search(_SECRETIVE, path):
        return _of_kafka(path, data, hide)
    return data if re.search(_OF_KAFKA, path) else _of_stranger(data)


def shown_column(paths: pa.Array, data: pa.Array, hide: Hide = stars) -> pa.Array:
    """The same for whole columns (string, binary)."""
    at = _may_be_secret(paths)
    if not len(at):
        return data
    these = column(pa.int64(), at)
    some = zip(paths.take(these).to_pylist(), data.take(these).to_pylist())
    shown = octets([shown_data(path, each, hide) for path, each in some], data.type)
    mask = np.zeros(len(paths), np.bool_)
    mask[at] = True
    return pc.replace_with_mask(data, flags(mask), shown)


def _may_be_secret(paths: pa.Array) -> npt.NDArray[np.int64]:
    """Where they are: all but what Kafka keeps in the open. Most are that by how they begin, and it is quickly seen."""
    at = np.arange(len(paths))
    for top in _PLAIN:
        others = pc.invert(pc.starts_with(paths, top))
        paths, at = paths.filter(others), at[numbers(pc.indices_nonzero(others), "u8")]
    is_open = pc.and_not(pc.match_substring_regex(paths, _OF_KAFKA), pc.match_substring_regex(paths, _SECRETIVE))
    places: npt.NDArray[np.int64] = at[numbers(pc.indices_nonzero(pc.invert(is_open)), "u8")]
    return places


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
    """Of a credential the iterations stay; any other value of a user is a quota, if it is a number."""
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
        who = f"{who.partition(':')[0]}:{WITHHELD}" if ":" in who else WITHHELD
    elif scheme not in ("world", "sasl", "ip", "x509"):
        who = WITHHELD
    letters = "".join(sorted(letter for bit, letter in enumerate(_PERMISSIONS) if permissions >> bit & 1))
    return f"{scheme}:{who}:{letters}"
