from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest

from kit.groups.read import consumer_group_describe, other_groups
from kit.tables.groups import SHARE

MEMBER = {"member_id": "m", "client_id": "g_host-1", "client_host": "/10.0.0.1"}


@pytest.mark.parametrize("members", [consumer_group_describe.members, partial(other_groups.members, SHARE)])
@pytest.mark.parametrize(("given", "instance_id"), [({"instance_id": "static-1"}, "static-1"), ({}, None)])
def test_only_a_classic_member_can_be_embedded(members, given, instance_id):
    """Null would let its client id decide."""
    described = SimpleNamespace(**MEMBER, subscribed_topic_regex="", member_type=1, **given)
    (member,) = members(SimpleNamespace(group_id="g", members=[described]))
    assert (member.is_embedded, member.group_instance_id, member.client_host) == (False, instance_id, "10.0.0.1")
