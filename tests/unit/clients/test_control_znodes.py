"""The control znodes are read, and what Kafka can't decode of them is reported."""

from __future__ import annotations

import pytest

from kit.kraft.read.control_znodes import fetch_control
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

SOUND = {
    "/controller": b'{"version":2,"brokerid":1,"timestamp":"1","kraftControllerEpoch":-1}',
    "/controller_epoch": b"3",
    "/migration": b'{"version":0,"kraft_controller_id":-1,"kraft_controller_epoch":-1,"kraft_metadata_offset":-1,'
    b'"kraft_metadata_epoch":-1}',
}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/controller", b"{}"),
        ("/controller", b""),
        ("/controller", b'{"brokerid":"one"}'),
        ("/migration", b"{}"),
        ("/migration", b""),
        ("/migration", SOUND["/migration"].replace(b'"version":0', b'"version":1')),
        ("/controller_epoch", b"three"),
    ],
)
def test_a_znode_that_kafka_cannot_decode_is_a_problem_of_its_path(path, data):
    """Else nobody would hold ``/controller``, or nothing would be copied, as far as anybody can tell."""
    assert fetch_control(ZookeeperInMemory(SOUND)).problem_paths == ()
    control = fetch_control(ZookeeperInMemory(SOUND | {path: data}))
    assert control.undecodable(path) is not None
    assert control.refused(path) is None
    assert control.problem_paths == (path,)
