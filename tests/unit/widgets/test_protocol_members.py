"""The members of a group that Kafka alone coordinates, as the wizard of protocols shows them."""

from __future__ import annotations

from kit.moves.group.group_state import CLASSIC, CONSUMER
from tests.models.protocol_groups import group
from widgets.run import html


def test_a_group_without_zookeeper_has_no_sentence_about_a_toggle():
    shown = html.members(group(CLASSIC, CONSUMER), has_toggle=False)
    assert ("2 members, 6 partitions" in shown, "toggle" in shown) == (True, False)
