"""Namespaces of a real ZooKeeper: in one all is wrong that a znode can say, in the other all is hidden from a login."""

from __future__ import annotations

import json

from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

BAD, CLOSED = "/bad", "/closed"
HIDDEN = (
    "/controller", "/controller_epoch", "/migration", "/admin/reassign_partitions", "/admin/delete_topics",
    "/brokers/ids", "/brokers/seqid", "/isr_change_notification", "/config/changes", "/kafka-acl",
    "/latest_producer_id_block", "/config/users", "/config/brokers", "/config/topics", "/brokers/topics",
)  # fmt: skip


def write_bad_znodes(client: KazooClient) -> None:
    """A second namespace of the same cluster."""

    def write(path: str, held: object, **how: object) -> None:
        data = held if isinstance(held, bytes) else json.dumps(held).encode()
        client.create(f"{BAD}{path}", data, makepath=True, **how)

    def topic(name: str, replicas: dict[str, list[int]], **changed: object) -> None:
        topic_id = "AAAAAAAAAAAAAAAAAAAAB" + chr(ord("A") + len(name))
        write(f"/brokers/topics/{name}", {"version": 3, "topic_id": topic_id, "partitions": replicas} | changed)

    def state(name: str, **changed: object) -> None:
        sound = {"version": 1, "leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1]}
        write(f"/brokers/topics/{name}/partitions/0/state", sound | changed)

    write("/cluster/id", client.get("/cluster/id")[0])
    write("/brokers/ids/1", client.get("/brokers/ids/1")[0])
    write("/controller", {"version": 2, "brokerid": 3005, "timestamp": "1", "kraftControllerEpoch": 7})
    write("/controller_epoch", b"3")
    write("/migration", b"")
    client.create(f"{BAD}/brokers/seqid", b"")
    client.set(f"{BAD}/brokers/seqid", b"")
    topic("zombie", {"0": [1, 9]})
    state("zombie", isr=[1, 8], controller_epoch=12)
    topic("idless", {"0": [1]}, topic_id=None)
    state("idless", leader=-1, isr=[])
    topic("stateless", {"0": [1]})
    topic("moving", {"0": [1]}, adding_replicas={"0": [1]}, removing_replicas={})
    state("moving", leader_recovery_state=1)
    topic("bad name", {"0": [1]})
    state("bad name")
    write("/brokers/topics/hollow", b"{}")
    write("/admin/delete_topics/moving", b"")
    write("/admin/reassign_partitions", {"version": 1, "partitions": []})
    write("/config/brokers/one", {"version": 1, "config": {}})
    write("/config/brokers/1", {"version": 1, "config": {"ssl.key.password": "hush-hush"}})
    write("/config/clients/fast", {"version": 1, "config": {"producer_byte_rate": "fast"}})
    write("/config/users/ann", {"version": 1, "config": {"SCRAM-SHA-256": credential("!")}})
    for user in ("bob", "carol"):
        write(f"/config/users/{user}", {"version": 1, "config": {"SCRAM-SHA-512": credential("eA==")}})
    write("/config/topics/moving", {"version": 1, "config": {"retention": "1"}})
    write("/config/topics/gone", {"version": 1, "config": {"retention.ms": "1"}})
    entry = {"principal": "alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
    write("/kafka-acl/Topic/orders", {"version": 1, "acls": [entry]})
    write("/kafka-acl/Group/a/b", {"version": 1, "acls": [entry | {"principal": "User:a"}]})
    write("/isr_change_notification/isr_change_1", {"version": 1, "partitions": []})
    write("/latest_producer_id_block", b"{")
    write("/feature", b"{}", acl=[make_acl("world", "anyone", read=True)])


def credential(salt: str) -> str:
    """Return a SCRAM credential as ZooKeeper holds it."""
    return f"salt={salt},stored_key=eA==,server_key=eA==,iterations=4096"


def write_closed_znodes(client: KazooClient) -> None:
    """The same cluster, of which this login may not see who controls, who waits, and what is set."""
    for path in ("/cluster/id", "/brokers/ids/1"):
        client.create(f"{CLOSED}{path}", client.get(path)[0], makepath=True)
    for path in HIDDEN:
        client.ensure_path(f"{CLOSED}{path}")
        client.set_acls(f"{CLOSED}{path}", [make_digest_acl("node", "pw", all=True)])
