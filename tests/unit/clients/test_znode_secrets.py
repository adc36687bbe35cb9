"""The whole path decides whose znode it is: Kafka's stay exact but for secrets, another application's are not kept."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kit.clients.znode_secrets import shown_column, shown_data
from kit.text.stand_ins import stand_in

HUNTER = b"hunter2"
KAFKAS = (
    "/admin/delete_topics/orders",
    "/brokers/ids/1",
    "/brokers/topics/orders/partitions/0/state",
    "/cluster/id",
    "/config/changes/config_change_0000000001",
    "/config/topics/orders",
    "/config/clients/app%201",
    "/config/ips/<default>",
    "/controller",
    "/controller_epoch",
    "/kafka-acl/Topic/orders",
    "/kafka-acl/Group/a/b",
    "/kafka-acl-extended/prefixed/Topic/a",
    "/kafka-acl-changes/acl_changes_0000000000",
    "/latest_producer_id_block",
    "/log_dir_event_notification/log_dir_event_0000000000",
    "/migration",
)
CHROOTED = ("/config/app,prod/config/topics/x", "/config/application/kafka-acl/x", "/app/brokers/ids/1")
"""They could be Kafka's, if a chroot could begin anywhere."""
STRANGERS = (
    "/config/application/db.password",
    "/config/topics/orders/password",
    "/admin/token",
    "/brokers/vault",
    "/brokers/ids/1/secret",
    "/cluster/id/key",
    "/controller/backup",
    *CHROOTED,
)
"""Spring Cloud's root is ``/config`` by default."""


def both(path: str, data: bytes, strangers=None) -> bytes | None:
    """One znode's data, which is the same in a column."""
    (of_column,) = shown_column(pa.array([path]), pa.array([data], pa.binary()), stand_in, strangers).to_pylist()
    shown = shown_data(path, data, stand_in, strangers)
    assert (of_column == shown) is (shown == data or strangers is None)
    return of_column


@pytest.mark.parametrize("path", KAFKAS)
def test_kafka_s_own_znodes_are_kept(path):
    assert both(path, HUNTER, stand_in) == HUNTER
    assert both(path, HUNTER) == both(f"/chroot/of/kafka{path}", HUNTER) == HUNTER


@pytest.mark.parametrize("path", STRANGERS)
def test_nothing_of_another_application_is_kept(path):
    found = both(path, b'{"user":"ann","password":"hunter2"}', stand_in)
    assert b"hunter2" not in found
    assert b"ann" not in found


@pytest.mark.parametrize("path", [each for each in STRANGERS if each not in CHROOTED])
def test_if_a_chroot_may_be_anywhere_what_resembles_a_secret_is_redacted(path):
    assert both(path, b"password=hunter2") == b"password=***"


def test_an_acl_of_a_name_with_a_line_break_is_kept():
    assert both("/kafka-acl/Group/a\nb", HUNTER, stand_in) == HUNTER
