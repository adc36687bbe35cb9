"""A process of its own that writes to histories, order by order: ``python -m … EVENTS ORDERS JAR``.

An order is a line of JSON on standard input: verb, folder, what and at (it is stalled before the at-th change that
begins so; 0: before none), later_s (its clock is so far after ``TODAY``) and number (of the snapshot to append). It is
answered on the pipe EVENTS, which ``Boundaries`` writes to as well.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

from pyspark.sql import SparkSession

from kit.errors import OfframpError
from kit.health.hours import Hours
from kit.history import History, Upkeep
from kit.tables import schema as tables
from tests.generators.small_snapshots import KEPT, SECOND, TODAY, small_snapshot
from tests.property.small_spark import small_spark

Verb = Callable[[SparkSession, str, timedelta, int], None]


def append(spark: SparkSession, folder: str, later: timedelta, number: int) -> None:
    History(spark, folder).append(small_snapshot(spark, SECOND, number))


def compact(spark: SparkSession, folder: str, later: timedelta, number: int) -> None:
    list(Upkeep(spark, folder, lambda: TODAY + later).compact())


def hours(spark: SparkSession, folder: str, later: timedelta, number: int) -> None:
    list(Hours(spark, folder, lambda: TODAY + later).make())


def expire(spark: SparkSession, folder: str, later: timedelta, number: int) -> None:
    gone: date = SECOND.date()
    Upkeep(spark, folder, lambda: TODAY + later).expire(gone)


VERBS: dict[str, Verb] = {each.__name__: each for each in (append, compact, hours, expire)}


def main(events: str, orders: str, jar: str) -> None:
    tables.ALL = KEPT
    settings = {"spark__driver__extraClassPath": jar, "spark__hadoop__fs__file__impl": "Boundaries"}
    spark = small_spark(**settings)
    boundaries = cast(Any, spark)._jvm.Boundaries
    _tell(events, "ready")
    for line in sys.stdin:
        order = json.loads(line)
        boundaries.arm(order["folder"], order["what"], order["at"], events, orders)
        try:
            VERBS[order["verb"]](spark, order["folder"], timedelta(seconds=order["later_s"]), order["number"])
        except OfframpError as error:
            _tell(events, f"refused {error}".replace("\n", " "))
        else:
            _tell(events, f"done {boundaries.passed()}")


def _tell(events: str, line: str) -> None:
    with Path(events).open("w") as pipe:
        pipe.write(f"{line}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
