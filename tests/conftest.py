"""Choose the tests that ``make check`` leaves out, and how the rest is shared out by ``pytest --dist loadgroup``."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.leftovers", "tests.skips")

# Beside tests on real servers all is slow at times, and that is no finding.
settings.register_profile("offramp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("offramp")

# A process that a shell starts in the background ignores Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
REAL = ("interop", "servers", "notebooks", "browser")
"""Folders of tests on real servers: all of them are slow. So is each test that starts Spark, wherever it is."""
LONG_PROPERTIES = (
    "property/groups/analyze/test_engines.py",
    "property/groups/analyze/test_groups.py",
    "property/health/analyze/test_health_engines.py",
    "property/groups/analyze/test_long_reports.py",
    "property/consumer/test_simulation.py",
    "property/rebalances/logs/test_extract.py",
    "property/rebalances/logs/test_foreign_layouts.py",
    "property/kraft/metadata_log/test_by_columns.py",
    "property/groups/read/test_hostile_znodes.py",
)
"""Almost half of the processor's time of all tests without a server: `make check` can do without them."""
LONGEST = (
    "servers/test_protocol_moves.py",
    "notebooks/test_report.py",
    "notebooks/test_nbval.py",
    "notebooks/test_explore.py",
    "notebooks/test_groups.py",
    "browser/test_browser.py",
    "notebooks/test_lag_explained.py",
    "notebooks/test_explore_health.py",
    "servers/test_every_figure.py",
    "property/history/test_here.py",
    "interop/test_client_logs.py",
    "property/history/test_upkeep.py",
    "interop/test_migrate_group.py",
    "property/history/test_by_groups.py",
    "notebooks/test_runbook.py",
    "property/groups/analyze/test_engines.py",
    "notebooks/test_kraft.py",
    "servers/test_kraft.py",
    "interop/test_kraft_move.py",
    "browser/test_wheel.py",
    "browser/test_wizard.py",
    "property/history/test_full_disk.py",
    "property/history/test_crashes.py",
    "servers/test_spark_modes.py",
    "interop/test_migration.py",
    "interop/test_migrate_fleet.py",
    "browser/test_kraft_wizard.py",
    "servers/test_kraft_rehearsal.py",
    "interop/test_migrate_faults.py",
    "browser/test_hostile.py",
    "interop/test_zookeeper_members.py",
    "browser/test_fleet_wizard.py",
    "notebooks/test_runbook_fleet.py",
    "servers/test_kraft_preflight.py",
    "property/groups/read/test_hostile_znodes.py",
    "browser/test_protocol_wizard.py",
    "servers/test_migrate_offsets.py",
    "servers/test_kafka_lock.py",
    "property/history/test_hours.py",
    "notebooks/test_health_report.py",
    "servers/test_rebalance_view.py",
    "property/health/analyze/test_health_engines.py",
    "servers/test_delete_groups.py",
    "interop/test_consume_ends.py",
    "servers/test_time_lag_truth.py",
    "servers/test_kerberos.py",
    "servers/test_backtest.py",
    "servers/test_outlook.py",
    "servers/test_export.py",
    "servers/test_fleet.py",
    "interop/test_consume.py",
    "browser/test_monitor.py",
    "browser/test_offsets_wizard.py",
    "notebooks/test_move_offsets.py",
    "servers/test_oauth.py",
    "servers/test_other_groups.py",
    "property/consumer/test_simulation_mistakes.py",
    "servers/test_secured_kraft.py",
    "notebooks/test_schedules.py",
)
"""Begun first, so that none of them is left alone at the end."""
_GONE = [name for name in (*LONG_PROPERTIES, *LONGEST) if not (TESTS / name).exists()]
assert not _GONE, f"these lists name files that are gone: {_GONE}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one file, or of one named group, run in one process: they share servers."""
    items.sort(key=_rank)  # the order within a file stays
    for item in items:
        if _file(item).startswith((*REAL, *LONG_PROPERTIES)) or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_file(item)))


def _rank(item: pytest.Item) -> int:
    return LONGEST.index(_file(item)) if _file(item) in LONGEST else len(LONGEST)


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(TESTS).as_posix()
