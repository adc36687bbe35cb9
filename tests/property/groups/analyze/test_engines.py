"""Every analysis gives the same rows on Spark and on polars, eager or lazy, in any order of rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings, strategies as st
from polars.testing import assert_frame_equal
from pyspark.sql import DataFrame, SparkSession

from kit.groups.analyze.random_names import name_rule
from kit.tables import schema as tables
from kit.tables.spark import in_spark
from tests.generators import hostile
from tests.generators.random_snapshots import ANALYSES, TABLES, Frames, Rows, arrow, nothing, polars_frames, snapshots
from tests.soak import soak_only

N_SNAPSHOTS = 80


@pytest.fixture(scope="session")
def many() -> Rows:
    """Many random snapshots put together: a Spark job costs the same for one as for all of them."""
    together = nothing()

    @settings(max_examples=N_SNAPSHOTS, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        for name, rows in data.draw(snapshots(len(counted))).items():
            together[name] += rows
        counted.append(1)

    counted: list[int] = []
    collect()
    assert len(counted) >= N_SNAPSHOTS
    return together


@pytest.fixture(scope="module")
def spark_frames(spark: SparkSession, many: Rows) -> Frames:
    return Frames({name: _stamped(spark, name, rows) for name, rows in arrow(many).items()})


@pytest.fixture(scope="module")
def empty_spark_frames(spark: SparkSession) -> Frames:
    return Frames({name: _stamped(spark, name, rows) for name, rows in arrow(nothing()).items()})


def _stamped(spark: SparkSession, name: str, rows: Any) -> DataFrame:
    """Return the frame as stored: with snapshot_id and observed_at, which the polars frames here don't have."""
    table = tables.OWNERSHIP if name == "later_ownership" else next(table for table in TABLES if table.name == name)
    stamped = table.stamp(rows, "s1", datetime(2026, 1, 1, tzinfo=UTC))
    return in_spark(spark, stamped).cache()


def _sorted(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=lambda row: tuple((value is None, str(value)) for value in row))


def test_a_table_of_several_pieces_comes_to_spark_whole(spark: SparkSession) -> None:
    """Reads of several sources, and polars' threads, leave pieces without rows between and before the others."""
    piece = pa.table({"offset": range(12_000)})
    nothing = piece.slice(0, 0)
    for pieces in ([nothing, nothing, piece], [piece, nothing, piece], [nothing]):
        whole = pa.concat_tables(pieces)
        assert in_spark(spark, whole).count() == len(whole)


RARE = {"stale_stores": 1}
"""Rows at least, of an analysis that has fewer than eleven: few random groups have members of one kind alone."""


@pytest.mark.parametrize(
    "name",
    # It puts others together, which are compared by themselves: Spark plans it for longer than five of those.
    [pytest.param(name, marks=soak_only) if name == "group_summary" else name for name in ANALYSES],
)
def test_spark_and_polars_agree(name: str, many: Rows, spark_frames: Frames) -> None:
    expected = ANALYSES[name](polars_frames(many))
    found = pl.from_arrow(ANALYSES[name](spark_frames).toArrow())
    assert len(expected) >= RARE.get(name, 11)
    assert found.schema == expected.schema
    assert _sorted(found) == _sorted(expected)


@pytest.mark.parametrize("name", ANALYSES)
def test_empty_tables_give_an_empty_table_of_the_same_shape(name: str, many: Rows) -> None:
    found = ANALYSES[name](polars_frames(nothing()))
    assert found.is_empty()
    assert found.schema == ANALYSES[name](polars_frames(many)).schema


@pytest.mark.parametrize("name", ["topic_skew", "partition_lag", "group_balance"])
def test_empty_tables_give_no_row_on_spark_either(name: str, empty_spark_frames: Frames) -> None:
    assert ANALYSES[name](empty_spark_frames).isEmpty()


@pytest.mark.parametrize("name", ANALYSES)
def test_a_lazy_frame_stays_lazy_and_gives_the_same_rows(name: str, many: Rows) -> None:
    eager = polars_frames(many)
    lazy = ANALYSES[name](Frames({name: frame.lazy() for name, frame in eager.items()}))
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(), ANALYSES[name](eager), check_row_order=False, abs_tol=0, rel_tol=1e-12)


@pytest.mark.parametrize("name", ANALYSES)
def test_the_order_of_rows_does_not_matter(name: str, many: Rows) -> None:
    backwards = {table: rows[::-1] for table, rows in many.items()}
    assert _sorted(ANALYSES[name](polars_frames(backwards))) == _sorted(ANALYSES[name](polars_frames(many)))


def test_names_appear_random_to_both_engines_alike(spark: SparkSession) -> None:
    """Java's expressions and Rust's: line ends, letters of other scripts, digits of theirs."""
    made = ["console-consumer-1", "console-consumer-1\n", "a-0F8FAD5B-d9cb-469f-a165-70867728950e", "job-1f2e3d4c5b6a"]
    made += [
        "orders-7d9f8b6c5-x2x4k",
        "x-10.0.0.1-4711",
        "a.b-host.example.com-12345",
        "aB3dE5fG7hI9jK1lM2",
        "deadbeefcafe",
    ]
    made += ["١٢٣٤٥٦٧٨٩٠١٢", "é1699999999999", "e\n1699999999999", "anonymous.x", "anonymous.\n", "1" * 40]
    names = pl.DataFrame({"group_id": sorted({*made, *hostile.GROUPS})}).with_row_index("at").cast({"at": pl.Int64})
    told = [
        nw.from_native(frame).select("at", rule=name_rule()).to_native()
        for frame in (names, spark.createDataFrame(names.rows(), "at long, group_id string"))
    ]
    assert _sorted(pl.DataFrame(told[1].toArrow())) == _sorted(told[0])
    assert told[0]["rule"].n_unique() > 5
