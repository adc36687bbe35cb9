"""Every face that can show a name, showing hostile ones: tables, charts, pages, wizards, as HTML by what they are of.

A new table, chart, page or fragment is here by itself, or makes ``tests/unit/test_hostile_faces.py`` fail: they are
found in the code, not listed.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ipywidgets as ipw
import polars as pl
import pyarrow as pa

from kit.engine.model.event import Event
from kit.engine.model.record import RunRecord, list_runs, load_run
from kit.engine.rendering import pages
from kit.errors import RunError
from kit.groups.show import charts, display
from kit.health.show import health_charts, idle_charts
from kit.kraft import status as kraft
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.steps import start_step
from kit.kraft.show import kraft_charts
from kit.moves.group.deploy import Manual
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest, plan_from
from kit.operations import evidence, frames
from kit.operations.operations import Operations
from kit.presentation import chart as every_chart
from kit.profile import Profile
from kit.rebalances.show import rebalance_charts
from kit.tables import schema as tables
from kit.tables.schema import Table
from tests import kraft_records
from tests.generators import hostile
from tests.models.fleet import ToyFleet, open_toy_fleet
from tests.models.looks import ToyLooks
from tests.models.offsets import ToyOffsets, open_toy
from tests.models.operations import ToyGroup, ToyOperations
from tests.models.protocol_groups import group as classic_group
from tests.unit.kraft.move.move_plans import WORDS, plan_to
from tests.unit.protocol.test_checks import GROUP as protocol_group, facts as protocol_facts
from tests.unit.widgets.shown import below
from widgets import fleet_wizard, offsets_wizard, rollback_wizard, toggle_wizard, wizard
from widgets.fleet import html as fleet_html
from widgets.group.model import GroupMigration
from widgets.kraft import html as kraft_html
from widgets.kraft.model import KraftMove
from widgets.kraft.view import KraftWizard
from widgets.live import html as live_html
from widgets.live.model import Monitor
from widgets.live.view import MonitorView
from widgets.offsets import html as offsets_html
from widgets.protocol import html as protocol_html
from widgets.protocol.fleet import ProtocolFleet
from widgets.protocol.fleet_view import ProtocolFleetWizard
from widgets.run import html

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
TABLES = {each.name: each for each in vars(tables).values() if isinstance(each, Table)}
CHARTS = {
    name: draw
    for module in (every_chart, charts, health_charts, idle_charts, kraft_charts, rebalance_charts)
    for name, draw in vars(module).items()
    if inspect.isfunction(draw)
    and draw.__module__ == module.__name__
    and "Chart" in str(draw.__annotations__.get("return"))
    if not name.startswith("_")
}
FRAGMENTS = (html, fleet_html, offsets_html, live_html, kraft_html, protocol_html)
SHORT = tuple(name for name in hostile.GROUPS if 0 < len(name) <= 250 and name.strip())
ALL_IN_ONE = (
    "".join(hostile.SCRIPTS),
    "".join((*hostile.MARKUP, *hostile.QUOTES)),
    "x" + "".join((*hostile.CONTROLS, *hostile.SCRIPTURES)),
)
"""Three names that hold the list: a wizard takes a second for each."""

_CHARTS_OF_TABLES = {
    "churn_chart": tables.REBALANCES,
    "phase_strip": tables.KRAFT_NODES,
    "node_grid": tables.KRAFT_NODES,
    "verdict_matrix": tables.METADATA_DIFFERENCES,
    "drift_timeline": tables.KRAFT_STATES,
}
_NUMBERS = {"partition", "generation", "lag"}
_CHART_ROWS: dict[str, Callable[[int, str], dict[str, Any]]] = {
    "lag_heatmap": lambda at, name: _row(at, name, lag=at, has_no_commit=False),
    "member_share_bars": lambda at, name: _row(
        at, name, n_partitions=at, n_threads=1, fair_share=1.5, share_ratio=2.0, is_idle=not at
    ),
    "leaders_per_broker": lambda at, name: {
        "broker_id": at,
        "host": name,
        "rack": name,
        "is_live": True,
        **dict.fromkeys(("n_leaders", "n_preferred", "n_replicas", "n_in_sync"), at),
    },
    "store_parity_chart": lambda at, name: _row(
        at, name, zookeeper_offset=5, kafka_offset=9, difference=4, verdict="kafka_ahead"
    ),
    "rebalance_timeline": lambda at, name: _row(
        at,
        name,
        member=name,
        life=1 + at % 2,
        generation=at % 4,
        phase="holding",
        began_at=START + timedelta(seconds=at),
        ended_at=START + timedelta(seconds=at + 5),
        partitions=name,
        reason=name,
        is_utc=True,
    ),
    "verdict_timeline": lambda at, name: _row(at, name, status=name, from_ms=at * 1000, until_ms=at * 1000 + 500),
    "group_classes": lambda at, name: {"group_id": name, "store": "kafka", "class": name, "commit_age_ms": at},
    "commit_ages": lambda at, name: {"group_id": name, "store": "kafka", "class": name, "commit_age_ms": at},
    "ages_of_groups": lambda at, name: _row(
        at, name, lag=at + 1, lower_ms=at * 1000, time_lag_ms=at * 1000, upper_ms=at * 1000 + 500
    ),
    "hours_heatmap": lambda at, name: _row(at, name, hour_ms=at * 3_600_000, max_lag=at),
    "lag_by_tool": lambda at, name: _row(at, name, tool="kafka", lag=at, summed_lag=at, is_listed=True),
    "nothing": lambda at, name: {},
}


def names_in(title: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the subject of each face, and its HTML with these names in every place that takes text."""
    for table in TABLES.values():
        yield f"table {table.name}", display.table(of_table(table, names)).to_html()
    yield "table of every type", display.table(of_every_type(names)).to_html()
    for name in CHARTS:
        yield f"chart {name}", charts.svg(chart(name, names, title))


def of_table(table: Table, names: Sequence[str]) -> pl.DataFrame:
    """A row per name, which is in each of its texts and lists."""
    values = {field.name: [_value(field.type, at, names) for at in range(len(names))] for field in table.schema}
    return pl.DataFrame(pa.table(values, schema=table.schema))


def of_every_type(names: Sequence[str]) -> pl.DataFrame:
    """The types that no table has now, and names of columns."""
    others = [*names[1:], names[0]]
    frame = pl.DataFrame(
        {
            "struct": [{"a": name, "b": [name]} for name in names],
            "structs": [[{"a": name}] for name in names],
            "lists": [[[name], None] for name in names],
            "binary": [name.encode() for name in names],
            "category": pl.Series(names, dtype=pl.Categorical),
            "object": pl.Series([{name} for name in names], dtype=pl.Object),
            "array": pl.Series([[a, b] for a, b in zip(names, others)], dtype=pl.Array(pl.String, 2)),
            "duration": [timedelta(seconds=1)] * len(names),
            "nothing": [None] * len(names),
        }
    )
    columns = [pl.Series(name, [at] * len(names)) for at, name in enumerate(names)]
    return frame.with_columns(columns)


def chart(name: str, names: Sequence[str], title: str) -> Any:
    if name == "nothing":
        return every_chart.nothing(title, names)
    return CHARTS[name](chart_rows(name, names), title=title)


def chart_rows(name: str, names: Sequence[str]) -> pl.DataFrame:
    """Return the rows that the chart draws: a row per name, which is in each of its texts."""
    if name in _CHARTS_OF_TABLES:
        return of_table(_CHARTS_OF_TABLES[name], names)
    return pl.DataFrame([_CHART_ROWS[name](at, each) for at, each in enumerate(names)])


class Wizards:
    """Every wizard over toys of one hostile name, in every state; ``html`` is all they ever sent to a browser."""

    def __init__(self, home: Path, name: str, monkeypatch: Any) -> None:
        self.name, self.home, self.html = name, home, dict[str, str]()
        self.group = hostile.as_znode(name)
        self.called: set[str] = set()
        before = sys.getprofile()
        sys.setprofile(self._note)
        threading.setprofile(self._note)  # The result of a model's worker is drawn on its thread.
        try:
            self._group()
            self._fleet()
            self._offsets(monkeypatch)
            self._monitor()
            self._kraft()
            self._protocols()
        finally:
            sys.setprofile(before)
            threading.setprofile(None)  # type: ignore[arg-type]
        self._evidence()

    def _note(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("widgets."):
            self.called.add(f"{frame.f_globals['__name__']}.{frame.f_code.co_name}")

    def _keep(self, what: str, view: Any) -> None:
        for at, each in enumerate(below(view)):
            if isinstance(each, ipw.HTML) and "<style>" not in each.value:
                self.html[f"{what} {at}"] = each.value

    def _group(self) -> None:
        toy = _HostileGroup(self.name)
        runs = self.home / "group"
        model = GroupMigration(lambda say, tell: ToyOperations(toy, runs, say, tell), toy.look, self.group)
        model.soak_s, model.to_stage = 0.0, "canary MEZKCC"
        views = [show(model) for show in (wizard, toggle_wizard, rollback_wizard)]
        model.to_stage = "canary MEZKCC"
        self._through(model, views, "group")
        model.error = model.instruction = model.watch_error = model.untrusted = self.name
        for view in views:
            self._keep("group told", view)
        self.html["group not drawn"] = views[0].html(self._undrawable).value
        model.close()

    def _undrawable(self, model: Any) -> str:
        raise ValueError(self.name)

    def _fleet(self) -> None:
        toy = ToyFleet(self.group, f"{self.group}-2", *"abcd")
        toy.deaf.add(self.group)
        model = open_toy_fleet(toy, self.home / "fleet")
        model.wave, model.step_timeout_s, model.pause_s = 4, 0.05, 0.01
        self._through(model, [fleet_wizard(model)], "fleet")
        model.close()

    def _offsets(self, monkeypatch: Any) -> None:
        toy = ToyOffsets()
        toy.install(monkeypatch)
        toy.logs[("orders", 0)] = (10, 100)
        toy.zookeeper[(self.name, "orders", 0)] = 60
        model = open_toy(toy, self.home / "offsets")
        model.selection = pl.DataFrame({"group_id": [self.name], "topic": ["orders"], "partition": [0], self.name: [1]})
        self._through(model, [offsets_wizard(model)], "offsets")
        model.close()

    def _monitor(self) -> None:
        model = Monitor(self.name, ToyLooks(1, names=lambda number: self.name))  # type: ignore[arg-type]
        view = MonitorView(model)
        model.refresh()
        model.group_id = self.name
        self._keep("monitor", view)
        model.error = self.name
        self._keep("monitor failed", view)
        model.close()

    def _kraft(self) -> None:
        """Return the answers of nodes about themselves and the outcomes of their orders."""
        runs = self.home / "kraft"
        cluster = SimpleNamespace(
            name=self.name, cluster_id="abc", profile=Profile(name=self.name, file=Path("x"), bootstrap_servers="h:1")
        )
        silent = kraft_records.node("controller", address=self.name, node_id=None, error=self.name)
        nodes = (kraft_records.node("broker"), kraft_records.node("controller"), silent)
        facts = replace(
            kraft_records.SOUND, nodes=nodes, registrations=(kraft_records.broker(node_id=2),), log_error=self.name
        )
        model = KraftMove(
            lambda say, tell: Operations(cluster, runs, say, tell),  # type: ignore[arg-type]
            lambda: replace(kraft._judged(facts), cluster_name=self.name),
            self.name,
        )
        view = KraftWizard(model)
        model.stop_watching()
        self._keep("kraft", view)
        model.overrides = self.name
        model.record = _run_to_kraft(self.name, runs)
        self._keep("kraft told", view)
        model.close()

    def _protocols(self) -> None:
        """Verdicts of groups of these names, and a run over one of them that failed."""
        told = replace(protocol_group, group_id=self.group, error=self.name)
        cluster, runs = SimpleNamespace(cluster_id="abc"), self.home / "protocols"
        model = ProtocolFleet(
            lambda say, tell: SimpleNamespace(runs=runs, cluster=cluster, needs_second_person=lambda plan: False),  # type: ignore[arg-type, return-value]
            lambda offsets_topic: replace(protocol_facts(), groups={self.group: told}, problems=(self.name,)),
        )
        view = ProtocolFleetWizard(model)
        model.stop_watching()
        classic = classic_group(CLASSIC, CLASSIC)
        plan = plan_from(
            Observed(classic, classic), "abc", Manual(), ProtocolPlanRequest(self.group, CONSUMER), self.name
        )
        failed = Event(
            "r", 1, "2026-11-23T12:00:01Z", 0, "failed", "FAILED", plan.steps[0].step_id, *[None] * 9, previous=""
        )
        model.record = RunRecord("r", runs / "r", plan, (), (replace(failed, error=self.name, sentence=self.name),), "")
        model.plan, model.watch_error = plan, self.name
        self._keep("protocols", view)
        model.close()

    def _through(self, model: Any, views: Sequence[Any], what: str) -> None:
        """Plan, approve, act, undo; each is kept as it is shown."""
        for view in views:
            self._keep(f"{what} before", view)
        model.make_plan()
        model.wait(20)
        assert model.plan is not None, model.error
        model.typed_subject, model.typed_digest = model.plan.subject, model.plan.digest[:8]
        model.approver = self.name.replace("\x00", "")
        model.approve()
        for view in views:
            self._keep(f"{what} planned", view)
        model.act()
        with suppress(RunError):
            model.wait(20)
        for view in views:
            self._keep(f"{what} run", view)

    def _evidence(self) -> None:
        """Pages, and the notebooks' tables and picture, of each run."""
        for runs in self.home.iterdir():
            for row in list_runs(runs):
                record = load_run(runs / row.run_id)
                self.html[f"page of the plan, {runs.name}"] = pages.plan_section(record.plan)
                self.html[f"page of the run, {runs.name}"] = pages.record_html(record)
                self.html[f"timeline, {runs.name}"] = charts.svg(evidence.timeline(record))
                for name in ("plan", "steps", "outcomes", "failed_groups", "verifications", "events", "verdict"):
                    shown = getattr(frames, name)(record.plan if name == "plan" else record)
                    self.html[f"frame {name}, {runs.name}"] = display.table(shown).to_html()


def _run_to_kraft(name: str, runs: Path) -> RunRecord:
    """Return whose node did not come."""
    step = start_step("01-start", OrderParameters.made_from(WORDS, nodes=(3000,), to_mode="migration"))
    asked = Event("r", 1, "2026-11-23T12:00:01Z", 0, "attempted", "ACTING", "01-start", *[None] * 9, previous="")
    asked = replace(asked, details='{"items":["controller 3000"]}')
    failed = replace(asked, event="acted", item="controller 3000", outcome="UNKNOWN", error=name)
    return RunRecord("r", runs / "r", plan_to("kraft", steps=(step,)), (), (asked, failed), "")


class _HostileGroup(ToyGroup):
    """Its members, their hosts and the toggle are named so too."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def _member(self, number: int, flavour: str, now: datetime) -> Any:
        return replace(super()._member(number, flavour, now), host=self.name, member_id=f"{self.name}{number}")


def fragments_of(module: ModuleType) -> set[str]:
    """The functions of a module, by their whole names."""
    return {
        f"{module.__name__}.{name}"
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__
    }


def _row(at: int, name: str, **more: Any) -> dict[str, Any]:
    texts = ("group_id", "topic", "member_id", "error", "source")
    return {**dict.fromkeys(texts, name), "store": "kafka", "partition": at % 5, **more}


def _value(kind: pa.DataType, at: int, names: Sequence[str]) -> Any:
    if pa.types.is_list(kind):
        return [_value(kind.value_type, each % len(names), names) for each in (at, at + 1)]
    if pa.types.is_string(kind):
        return names[at]
    if pa.types.is_binary(kind):
        return names[at].encode()
    if pa.types.is_timestamp(kind):
        return START + timedelta(seconds=at)
    return at % 2 == 0 if pa.types.is_boolean(kind) else at % 100
