"""Delete a topic, and return when nothing of it is left: the deletion continues after the request's answer."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from kit.lab.topics import QUIET
from tests.servers.awaiting import SECONDS, awaited


def delete_topic(lab, topic: str) -> None:
    """Delete it; no broker knows it any more, and a topic of that name can be created.

    With ZooKeeper, the controller removes the znode of the deletion after all others; until then it refuses a topic
    of that name as "marked for deletion" (TopicDeletionManager.completeDeleteTopic, AdminZkClient).
    """
    lab.admin.delete_topics([topic])[topic].result(SECONDS)
    clients = {
        broker.broker_id: AdminClient({**QUIET, "bootstrap.servers": broker.addresses["PLAINTEXT"]})
        for broker in lab.servers.brokers
    }

    def traces() -> list[str]:
        return [
            f"broker {number}"
            for number, client in clients.items()
            if topic in client.list_topics(timeout=SECONDS).topics
        ] + ["its name"] * is_taken(lab, topic)

    awaited(traces, lambda found: not found, f"no trace of topic {topic}")


def is_taken(lab, topic: str) -> bool:
    """Return whether the controller would refuse to create it, for there is one."""
    try:
        lab.admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic].result(SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return True
    return False
