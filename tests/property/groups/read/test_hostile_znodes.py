"""Znodes that hold anything at all, read by the real reader, through Arrow, polars and Spark, into every analysis."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st
from pyspark.sql import SparkSession

from kit.clients.brokers import ClusterMetadata
from kit.clients.multiread import OCTETS_PER_REQUEST
from kit.groups import snapshot as snapshots, views
from kit.groups.read import whole_cluster
from kit.groups.read.coordinator import CoordinatedGroups
from kit.groups.read.zookeeper import fetch_brokers, fetch_consumers
from kit.groups.snapshot import Snapshot
from kit.moves.fleet.plan import fleet
from kit.moves.group.group_state import readable_group_states
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, ZOOKEEPER, Broker, LogOffset, TopicPartition
from kit.text.numbers import INT32_MAX, INT64_MAX
from tests.generators import hostile
from tests.generators.nasty_znodes import NASTY, PLACES, REGISTRATION
from tests.models.zookeeper import FakeClient, Node
from tests.soak import IS_SOAK

ANALYSES = (
    views.lag,
    lambda it: views.group_lag(views.lag(it)),
    views.owners,
    views.findings,
    lambda it: views.finding_summary(views.findings(it)),
    views.shares,
    views.parity,
    views.readiness,
    views.blockers,
    views.summary,
    views.broker_load,
    views.topic_skew,
)
ON_SPARK = (views.lag, views.owners, views.readiness)
"""In the short form: one of each kind of table, offsets, members and groups."""
TOPICS = ("orders", "payments")

STATS = st.fixed_dictionaries(
    {},
    optional={
        "czxid": st.integers(0, INT64_MAX),
        "mzxid": st.integers(0, INT64_MAX),
        "created_ms": st.integers(0, 4_102_444_800_000),
        "modified_ms": st.integers(0, 4_102_444_800_000),
        "version": st.integers(-1, INT32_MAX),
        "ephemeral_owner": st.integers(-(2**63), INT64_MAX),
    },
)
DATA = st.one_of(st.sampled_from(NASTY), st.binary(max_size=40), st.text(max_size=20).map(str.encode))
NAMES = st.one_of(st.sampled_from(["g1", "g2", "member", *TOPICS]), hostile.znodes())
RARELY = st.integers(0, 15).map(lambda it: it == 0)


def nodes(children: st.SearchStrategy[dict[str, Node]]) -> st.SearchStrategy[Node]:
    return st.builds(Node, DATA, children, RARELY, RARELY, STATS)


LEAF = nodes(st.just({}))
STRAY = nodes(st.dictionaries(NAMES, LEAF, max_size=1))
"""Children where none are expected."""
FLAT = nodes(st.dictionaries(NAMES, STRAY, max_size=3))
BY_TOPIC = nodes(
    st.dictionaries(
        NAMES, nodes(st.dictionaries(st.one_of(st.sampled_from(PLACES), NAMES), STRAY, max_size=4)), max_size=3
    )
)
MIGRATION = nodes(st.fixed_dictionaries({}, optional={"ids": FLAT, "mode": STRAY, "else": STRAY}))
GROUP = nodes(
    st.fixed_dictionaries(
        {}, optional={"ids": FLAT, "owners": BY_TOPIC, "offsets": BY_TOPIC, "migration": MIGRATION, "\x7fstray": STRAY}
    )
)
BROKERS = nodes(
    st.fixed_dictionaries(
        {}, optional={"ids": nodes(st.dictionaries(st.sampled_from(PLACES), LEAF, max_size=4)), "topics": FLAT}
    )
)
GROUPS = st.dictionaries(NAMES, GROUP, max_size=4)


def tree(groups: dict[str, Node], brokers: Node, controller: Node) -> Node:
    return Node(children={"consumers": Node(children=groups), "brokers": brokers, "controller": controller})


@pytest.fixture(autouse=True)
def _kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return a cluster without ZooKeeper: two topics of two partitions, and no group."""
    partitions = tuple(TopicPartition(topic, n, False, 1, 0, (1,), (1,)) for topic in TOPICS for n in range(2))
    brokers = tuple(Broker(number, "host", 9092, None, False, None) for number in (0, 1, 7))
    empty = {table.name: table.columns({}) for table in tables.ALL}
    names = ("groups", "members", "subscriptions", "ownership", "committed_offsets")
    answers = {
        "fetch_metadata": lambda client: ClusterMetadata("id", brokers, partitions, {}),
        "fetch_groups": lambda client, accepts: CoordinatedGroups(**{name: empty[name] for name in names}, errors=()),
        "fetch_unseen_groups": lambda client: None,
        "fetch_undescribable": lambda client, topics: set(),
        "fetch_log_offsets": lambda client, wanted: [LogOffset(it.topic, it.partition, 0, 9) for it in wanted],
    }
    for name, answer in answers.items():
        monkeypatch.setattr(whole_cluster, name, answer)


def cluster_of(root: Node) -> Any:
    return SimpleNamespace(
        name="fake",
        cluster_id="id",
        broker_client=None,
        zookeeper=FakeClient(root),
        profile=SimpleNamespace(leave_out_groups=()),
    )


def leaves(groups: dict[str, Node], branch: str) -> int:
    """Names under the topics that could be listed, less those that vanished: here none does."""
    found = 0
    for group in groups.values():
        of_branch = group.children.get(branch, Node())
        if not of_branch.is_closed:
            found += sum(len(topic.children) for topic in of_branch.children.values() if not topic.is_closed)
    return found


ANYTHING = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
ANYTHING_AT_ALL = settings(ANYTHING, max_examples=1_000 if IS_SOAK else 300)


def test_trees_of_other_systems_are_counted_and_are_no_groups():
    """Storm's spouts, and a recipe of Spark; a group with its own tree, one that lost it, and one in migration."""
    groups = {
        "spout": Node(children={"partition_0": Node(b'{"offset":7}')}),
        "spark": Node(children={"offsets": Node(children={"orders": Node(b"0:7,1:9")})}),
        "old": Node(children={"offsets": Node(children={"orders": Node(children={"0": Node(b"7")})})}),
        "started": Node(children={"ids": Node()}),
        "no-topic": Node(children={"offsets": Node(children={"orders": Node()})}),
        "bare": Node(),
        "moving": Node(children={"migration": Node()}),
    }
    found = read(groups, Node(), Node())
    assert set(found.groups["group_id"]) == set(groups) - {"spout", "spark"}
    assert found.read_errors.is_empty()
    sentence = snapshots.unseen_groups(found)
    assert sentence.startswith("2 trees below /consumers not understood")
    assert sentence.endswith(": /consumers/spark and /consumers/spout")


def is_other(group: Node) -> bool:
    """Return whether another system may have made it."""
    if {"ids", "owners"} & group.children.keys():
        return False
    if "offsets" not in group.children:
        return bool(group.children)
    return any(topic.data and not topic.children for topic in group.children["offsets"].children.values())


def read(groups: dict[str, Node], brokers: Node, controller: Node) -> Snapshot[pl.DataFrame]:
    """Nothing is left out, and nothing is known that isn't: a row, a row with an error, or a read error."""
    cluster = cluster_of(tree(groups, brokers, controller))
    found = snapshots.observe(cluster)
    others = set(groups) - set(found.groups["group_id"])
    assert sorted([*found.groups["group_id"], *others]) == sorted(groups)
    assert all(is_other(groups[name]) for name in others)
    assert bool(others) is (found.snapshots["unseen_groups"][0] is not None)
    assert cluster.zookeeper.asked[0] == "sync"
    strays = found.read_errors.filter(
        pl.col("group_id").is_not_null() & pl.col("topic").str.contains("/", literal=True)
    )
    assert leaves(groups, "owners") + leaves(groups, "offsets") == (
        len(found.ownership) + len(found.committed_offsets) + len(strays)
    )
    for name, known in (("committed_offsets", "committed_offset"), ("ownership", "member_id")):
        rows = getattr(found, name)
        assert (rows[known].is_null() == rows["error"].is_not_null()).all()
    assert (found.read_errors["error"].str.len_chars().max() or 0) < 2_000
    return found


def analyse(found: Snapshot[pl.DataFrame]) -> None:
    for analysis in ANALYSES:
        analysis(found)
    groups = sorted(found.groups["group_id"])
    for to in (KAFKA, ZOOKEEPER):
        assert fleet(found, to, 0.0)["group_id"].to_list() == groups
    told, unread = readable_group_states(found, groups)
    assert sorted([*(it.group_id for it in told), *unread]) == groups
    assert all(it.assignor is None or it.owners for it in told)


@ANYTHING
@given(groups=GROUPS, brokers=BROKERS, controller=LEAF)
@example(groups={"x" * 10_000: Node(is_hidden=True, is_closed=True)}, brokers=Node(), controller=Node())
@example(
    groups={"x" * 10_000: Node(children={"ids": Node(is_hidden=True, is_closed=True)})},
    brokers=Node(),
    controller=Node(),
)
def test_whatever_znodes_hold_is_rows_and_errors(groups: dict[str, Node], brokers: Node, controller: Node) -> None:
    read(groups, brokers, controller)


@pytest.mark.slow
@ANYTHING_AT_ALL
@given(groups=GROUPS, brokers=BROKERS, controller=LEAF)
def test_any_content_of_znodes_becomes_rows_and_errors_repeatedly(
    groups: dict[str, Node], brokers: Node, controller: Node
) -> None:
    read(groups, brokers, controller)


def ill(data: bytes) -> Node:
    """A group that holds the same everywhere."""
    places = Node(data, {name: Node(data) for name in PLACES})
    members = Node(data, {"m": Node(data), "n": Node(data, {"child": Node(data)})})
    return Node(
        data,
        {
            "ids": members,
            "owners": Node(data, {"orders": places}),
            "offsets": Node(data, {"orders": places}),
            "migration": Node(data, {"ids": members, "mode": Node(data)}),
        },
    )


LIVE = {"ephemeral_owner": 7}
WELL = Node(
    children={
        "ids": Node(children={"well": Node(REGISTRATION, stat=LIVE)}),
        "owners": Node(children={"orders": Node(children={each: Node(b"well-0", stat=LIVE) for each in ("0", "1")})}),
        "offsets": Node(children={"orders": Node(children={"0": Node(b"5"), "1": Node(b"6")})}),
    }
)


def everything_ill() -> dict[str, Node]:
    return {"well": WELL} | {f"ill-{number}": ill(data) for number, data in enumerate(NASTY)}


def test_a_bad_znode_hides_no_other_group() -> None:
    brokers = Node(children={"ids": ill(b"7").children["offsets"].children["orders"], "topics": ill(b"x")})
    found = read(everything_ill(), brokers, Node(b"[" * 100_000))
    analyse(found)
    well = found.committed_offsets.filter(group_id="well").sort("partition")
    assert well["committed_offset"].to_list() == [5, 6]
    assert views.blockers(found).filter(group_id="well").is_empty()
    assert [it.group_id for it in readable_group_states(found, ["well"])[0]] == ["well"]
    strays = found.read_errors.filter(pl.col("topic") == "orders/99999999999")
    assert len(strays) == 2 * len(NASTY)
    assert "fake/consumers/ill-0/offsets/orders/99999999999" in strays["subject"].to_list()
    assert (fleet(found, ZOOKEEPER, 0.0)["not_ready_reason"].is_not_null()).all()


def test_a_topic_that_may_not_be_listed_makes_its_group_unknown() -> None:
    shut = Node(children={"offsets": Node(children={"orders": Node(is_closed=True)})})
    found = read({"well": WELL, "shut": shut}, Node(), Node())
    told, unread = readable_group_states(found, ["well", "shut"])
    assert [it.group_id for it in told] == ["well"]
    assert "/offsets/orders: can't be listed: NoAuthError (the login needs the right READ there)" in unread["shut"]


@pytest.mark.parametrize("data", NASTY)
def test_a_brokers_registration_may_hold_anything(data: bytes) -> None:
    ids = Node(children={"0": Node(b'{"endpoints":["PLAINTEXT://a:1"]}'), "1": Node(data), "x": Node(data)})
    found = read({}, Node(children={"ids": ids}), Node(data)).brokers.sort("broker_id")
    assert found["endpoints"].to_list()[0] == ["PLAINTEXT://a:1"]
    assert found["broker_id"].to_list() == [0, 1, 7]


def test_every_analysis_takes_them(together: dict[str, Node]) -> None:
    analyse(read(together, Node(), Node()))


@pytest.fixture(scope="module")
def together() -> dict[str, Node]:
    """Many trees as one: an analysis costs the same for one as for all of them."""
    gathered = everything_ill()

    @settings(ANYTHING, max_examples=60, derandomize=True, database=None, phases=[Phase.generate])
    @given(GROUPS)
    def gather(groups: dict[str, Node]) -> None:
        gathered.update(groups)

    gather()
    return gathered


@pytest.mark.parametrize("fetch", [fetch_consumers, fetch_brokers])
def test_each_read_begins_with_a_sync(fetch: Any) -> None:
    """Plans for offsets read one of them alone."""
    client = FakeClient(tree({"well": WELL}, Node(), Node()))
    fetch(client)
    assert client.asked[0] == "sync"
    assert client.asked.count("sync") == 1


def test_long_names_are_asked_for_in_more_requests() -> None:
    """A server drops the connection of who sends more than a megabyte, and with it the whole scan."""
    places = {str(number): Node(b"1") for number in range(300)}
    group = Node(children={"offsets": Node(children={"orders": Node(children=places)})})
    cluster = cluster_of(tree({"x" * 10_000: group}, Node(), Node()))
    found = snapshots.observe(cluster)
    assert found.committed_offsets["committed_offset"].sum() == 300
    assert cluster.zookeeper.largest < 2 * OCTETS_PER_REQUEST


@pytest.mark.slow
def test_spark_takes_what_polars_takes(spark: SparkSession, together: dict[str, Node]) -> None:
    root = tree(together, Node(), Node())
    in_polars = snapshots.observe(cluster_of(root))
    in_spark: Snapshot[Any] = snapshots.take_snapshot(spark, cluster_of(root))
    for table in tables.ALL:
        assert getattr(in_spark, table.name).count() == len(getattr(in_polars, table.name))
    for analysis in ANALYSES if IS_SOAK else ON_SPARK:
        assert len(pl.from_arrow(analysis(in_spark).toArrow())) == len(analysis(in_polars))
