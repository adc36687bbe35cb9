"""Collect the lines of consumers and brokers about coordination: one template per wording, with the kind of event it
shows.

A template is the text as it is in the client's source, ``{}`` for what varies; a message has that wording if it
begins so. The versions are those whose sources have the text: release tags 0.8.2.2 … 3.9 of Kafka and the classes
of 4.1.1; v0.9.5 … v2.15 of librdkafka; 1.3.5 … 3.0.11 of kafka-python. The first wording that fits wins. ``CONTEXT`` is
known and shows no event; the member's own id, generation and partitions are ``kit.rebalances.logs.fields``' business.
"""

from __future__ import annotations

from kit.rebalances.logs.wordings.broker import BROKERS, PHPKAFKA_LINES
from kit.rebalances.logs.wordings.go import FRANZ_GO_LINES, KAFKA_GO_LINES, SARAMA_LINES
from kit.rebalances.logs.wordings.java import CLASSIC, CONSUMER_PROTOCOL, CONTEXTS, FRAMEWORKS
from kit.rebalances.logs.wordings.library import (
    BROD_LINES,
    KAFKA_NODE_LINES,
    KAFKAJS_LINES,
    PYKAFKA_LINES,
    RUBY_KAFKA_LINES,
)
from kit.rebalances.logs.wordings.librdkafka import RDKAFKA
from kit.rebalances.logs.wordings.other import KAFKA_PYTHON, OLD
from kit.rebalances.logs.wordings.template import (
    BESIDE,
    BROD,
    BROKER,
    CONTEXT,
    FRANZ_GO,
    JAVA,
    KAFKA_GO,
    KAFKA_NODE,
    KAFKAJS,
    LIBRARIES,
    LIBRDKAFKA,
    OLD_CONSUMER,
    PHPKAFKA,
    PYKAFKA,
    PYTHON,
    RUBY_KAFKA,
    SARAMA,
    LogTemplate,
)

__all__ = [
    "BESIDE",
    "BROKER",
    "BY_SOURCE",
    "CONTEXT",
    "JAVA",
    "LIBRARIES",
    "LIBRDKAFKA",
    "OLD_CONSUMER",
    "PYTHON",
    "RUBY_KAFKA",
    "LogTemplate",
]

BY_SOURCE = {
    JAVA: [*CLASSIC, *CONSUMER_PROTOCOL, *CONTEXTS, *FRAMEWORKS],
    PYTHON: [*KAFKA_PYTHON, *CLASSIC],
    OLD_CONSUMER: OLD,
    BROKER: BROKERS,
    KAFKAJS: KAFKAJS_LINES,
    FRANZ_GO: FRANZ_GO_LINES,
    SARAMA: SARAMA_LINES,
    RUBY_KAFKA: RUBY_KAFKA_LINES,
    KAFKA_GO: KAFKA_GO_LINES,
    BROD: BROD_LINES,
    KAFKA_NODE: KAFKA_NODE_LINES,
    PYKAFKA: PYKAFKA_LINES,
    PHPKAFKA: PHPKAFKA_LINES,
    LIBRDKAFKA: RDKAFKA,
}
"""In the order in which they are tried for a line that does not report whose it is; librdkafka's nearly always do."""
