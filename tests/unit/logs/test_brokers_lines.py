"""What a coordinator's line says of members and leaders, and where its reason ends."""

from __future__ import annotations

import pytest

from kit.logs.local import files_here, read_logs_here

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


@pytest.mark.parametrize("behind", ["", CLASS, f"{CLASS} [data-plane-kafka-request-handler-3]"])
@pytest.mark.parametrize(
    ("reason", "told", "member", "leader"),
    [
        (NEW, NEW, M, None),
        (f"{NEW}; client reason: not provided", NEW, M, None),
        (f"{LEADER}; client reason: rebalance failed due to X", f"{LEADER}; client reason: rebalance failed due to X",
         None, M),
        (CAPITAL, CAPITAL, None, M),
        (f"Updating metadata for member {M} during Stable", f"Updating metadata for member {M} during Stable", M, None),
    ],
)  # fmt: skip
def test_a_reason_ends_where_the_logger_begins(tmp_path, behind, reason, told, member, leader):
    log = tmp_path / "server.log"
    log.write_text(f"{LINE.format(reason)}{behind}\n")
    (event,) = read_logs_here(files_here([str(log)])).events.rows(named=True)
    assert (event["reason"], event["member_id"], event["leader_id"]) == (told, member, leader)
    assert event["logger"] == (CLASS.strip(" ()") if behind else None)
