"""A coordinator's line names members and leaders, and its reason ends somewhere."""

from __future__ import annotations

import polars as pl
import pytest

from kit.rebalances.logs import ClientLogs
from tests.unit.rebalances.logs.pasted import read_each

M = "web-1-0a0a0a0a-0b0b-0c0c-0d0d-0e0e0e0e0e0e"
LINE = (
    "[2020-01-02 03:04:05,006] INFO [GroupCoordinator 4]: Preparing to rebalance group carts in state "
    "PreparingRebalance with old generation 3 (__consumer_offsets-12) (reason: {})"
)
CLASS = " (kafka.coordinator.group.GroupCoordinator)"
NEW, LEADER, CAPITAL = (
    f"Adding new member {M} with group instance id None",
    f"leader {M} re-joining group during Stable",
    f"Leader {M} with group instance id till-1 re-joining group during Stable",
)


REASONS = [
    (NEW, NEW, M, None),
    (f"{NEW}; client reason: not provided", NEW, M, None),
    (f"{LEADER}; client reason: rebalance failed due to X", f"{LEADER}; client reason: rebalance failed due to X",
     None, M),
    (CAPITAL, CAPITAL, None, M),
    (f"Updating metadata for member {M} during Stable", f"Updating metadata for member {M} during Stable", M, None),
]  # fmt: skip
BEHIND = ("", CLASS, f"{CLASS} [data-plane-kafka-request-handler-3]")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, ClientLogs[pl.DataFrame]]:
    """Line → the log of this line alone."""
    lines = [f"{LINE.format(reason)}{behind}" for reason, *_ in REASONS for behind in BEHIND]
    return read_each(tmp_path_factory.mktemp("logs"), lines)


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize(("reason", "told", "member", "leader"), REASONS)
def test_a_reason_ends_where_the_logger_begins(alone, behind, reason, told, member, leader):
    (event,) = alone[f"{LINE.format(reason)}{behind}"].events.rows(named=True)
    assert (event["reason"], event["member_id"], event["leader_id"]) == (told, member, leader)
    assert event["logger"] == (CLASS.strip(" ()") if behind else None)
