"""One wording: a text of one kind of client, and the kind of event it shows."""

from __future__ import annotations

import re
from dataclasses import dataclass

JAVA = "java"
OLD_CONSUMER = "zookeeper"
LIBRDKAFKA = "librdkafka"
PYTHON = "kafka-python"
BROKER = "broker"
KAFKAJS = "kafkajs"
FRANZ_GO = "franz-go"
SARAMA = "sarama"
RUBY_KAFKA = "ruby-kafka"
KAFKA_GO = "kafka-go"
BROD = "brod"
KAFKA_NODE = "kafka-node"
PYKAFKA = "pykafka"
PHPKAFKA = "phpkafka"
LIBRARIES = (KAFKAJS, FRANZ_GO, SARAMA, RUBY_KAFKA, KAFKA_GO, BROD, KAFKA_NODE, PYKAFKA, PHPKAFKA)

CONTEXT = "context"
BESIDE = "; group:"
"""The text that franz-go prints behind a text, before the group; in JSON the group is a key of its own."""


@dataclass(frozen=True)
class LogTemplate:
    """One text of one kind of client. ``versions``: first and last that print it (``+``: still does)."""

    kind: str
    template: str
    versions: str
    source: str = JAVA

    @property
    def head(self) -> str:
        """The fixed text that a message of this wording begins with; may be empty."""
        return self.template.partition("{}")[0]

    @property
    def pattern(self) -> str | None:
        """A regular expression for the whole; None where the head reports all."""
        head, gap, rest = self.template.partition("{}")
        if not gap or not rest.strip():
            return None
        return "^" + ".*?".join(re.escape(part) for part in [head, *rest.split("{}")])


def rows(source: str, text: str) -> list[LogTemplate]:
    lines = [line.split("|", 2) for line in text.strip().splitlines() if line.strip()]
    return [LogTemplate(kind.strip(), template.strip(), versions.strip(), source) for kind, versions, template in lines]
