from __future__ import annotations

from types import SimpleNamespace

import pytest

from kit.read import consumer_group_describe, other_groups

MEMBER = {"member_id": "m", "client_id": "g_host-1", "client_host": "/10.0.0.1"}


@pytest.mark.parametrize("module", [consumer_group_describe, other_groups])
@pytest.mark.parametrize(("given", "instance_id"), [({"instance_id": "static-1"}, "static-1"), ({}, None)])
def test_only_a_classic_member_can_be_embedded(module, given, instance_id):
    """Null would let its client id decide."""
    described = SimpleNamespace(**MEMBER, subscribed_topic_regex="", **given)
    (member,) = module.members(SimpleNamespace(group_id="g", members=[described]))
    assert (member.is_embedded, member.group_instance_id, member.client_host) == (False, instance_id, "10.0.0.1")
