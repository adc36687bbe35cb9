"""What a node's answer to ApiVersions says of its version."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kit.read.nodes import finalized_level


@pytest.mark.parametrize(
    ("levels", "epoch", "expected"),
    [
        ({"metadata.version": 21}, 17, 21),
        ({"metadata.version": 21, "kraft.version": 1}, 0, 21),
        ({"metadata.version": 1}, -1, None),  # It has read nothing of the log yet.
        ({}, 5, None),
        (None, -1, None),
    ],
)
def test_a_level_is_known_once_the_log_was_read(levels, epoch, expected):
    features = [SimpleNamespace(name=name, max_version_level=level) for name, level in (levels or {}).items()]
    told = SimpleNamespace(finalized_features=levels and features, finalized_features_epoch=epoch)
    assert finalized_level(told) == expected
