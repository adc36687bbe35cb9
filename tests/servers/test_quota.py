"""A client over its request quota is slow, and gets all answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.protocol.admin import AlterClientQuotasRequest

from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.cluster import connect_kafka
from kit.groups.read.coordinator import fetch_groups
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.moves import Stored
from kit.profile import load_profile
from tests.servers.awaiting import awaited

CLIENT = "over its quota"
PERCENT = 0.03
"""The share of one request thread's time: each answer comes with a throttle time."""


@contextmanager
def quota(client: BrokerClient) -> Iterator[None]:
    of_entry = AlterClientQuotasRequest.EntryData

    def alter(remove: bool) -> None:
        entry = of_entry(
            entity=[of_entry.EntityData(entity_type="client-id", entity_name=CLIENT)],
            ops=[of_entry.OpData(key="request_percentage", value=PERCENT, remove=remove)],
        )
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        (answer,) = client.run(client.ask, request, None, Deadline(10)).entries
        assert answer.error_code == 0

    alter(False)
    try:
        yield
    finally:
        alter(True)


def test_groups_and_offsets_of_a_throttled_client(kraft_lab, tmp_path):
    path = tmp_path / "offramp.toml"
    path.write_text(kraft_lab.profile_toml())
    profile, groups = load_profile(file=path), [f"throttled-{number}" for number in range(5)]
    kraft_lab.create_topic("throttled", 2)
    kraft_lab.produce("throttled", 10)
    wanted = {(group, "throttled", partition): Stored(1) for group in groups for partition in range(2)}
    client = connect_kafka(profile)
    try:
        awaited(
            lambda: {answer.error for answer in KafkaWriter(client).write(wanted, {}).values()},
            lambda found: found == {None},
            "the commit: a coordinator learns of a new topic a moment later",
        )
        with quota(client):
            for _ in range(2):  # The first request of each connection, and later ones.
                throttled = connect_kafka(profile, client_id=CLIENT)
                try:
                    throttled.run(throttled.refresh_metadata)
                    listed = fetch_groups(throttled, groups.__contains__)
                    assert (len(list(listed.groups.rows("group_id"))), listed.errors) == (len(groups), ())
                    written = KafkaWriter(throttled).write(dict.fromkeys(wanted, Stored(2)), {})
                    assert {answer.error for answer in written.values()} == {None}
                finally:
                    throttled.close()
    finally:
        client.close()
