"""The demo's fleet as data: topics, and some twenty groups as a shop might have them after ten years of Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kit.lab.members.new_consumers import NewMember
from kit.lab.members.old_consumers import OldMember

TOPICS = {"orders": 12, "payments": 8, "shipments": 6, "clicks": 12, "invoices": 6, "returns": 4}
FIRST_RECORDS = {"orders": 2400, "payments": 800, "shipments": 600, "clicks": 6000, "invoices": 600, "returns": 400}
RECORDS_PER_SECOND = 20.0
LEAVES_AFTER = 100
# The time that the lab's ZooKeeper grants: the stopped member stays registered, as one that hangs in a pause does.
LONG_SESSION = {"zookeeper.session.timeout.ms": "1800000"}
QUICK = {"heartbeat.interval.ms": 1000}
CONSOLE = ("ops-console", "invoices")

LAGGING = "lagging"
STOPPED_MEMBER = "stopped member"
EMPTY = "empty"
BOTH_STORES = "both stores"
IDLE_THREADS = "more threads than partitions"
NEVER_COMMITS = "never commits"
MOVED = "moved to Kafka, left offsets in ZooKeeper"
CONDITIONS = {
    "recommendations": LAGGING,
    "fraud-scoring": STOPPED_MEMBER,
    "nightly-export": EMPTY,
    "legacy-audit": EMPTY,
    "loyalty-points": BOTH_STORES,
    "returns-desk": IDLE_THREADS,
    "partner-feed": NEVER_COMMITS,
    "warehouse-sync": MOVED,
}


@dataclass(frozen=True, slots=True)
class OldProcess:
    """One JVM of one release and its members; a ``stopped`` one is halted once the fleet is stable."""

    version: str
    members: Sequence[OldMember]
    stopped: bool = False


BILLING = OldMember("billing-invoices", "invoices,orders", threads=2)
FULFILMENT = OldMember("order-fulfilment", "orders,shipments", threads=2, assignor="roundrobin")
MIGRATED = OldMember("checkout", "orders")
"""In JVMs of their own, so that its members can be replaced one by one."""
SEARCH = OldMember("search-indexer", "clicks", threads=3)
OLD_PROCESSES = (
    OldProcess("1.1.1", (BILLING, FULFILMENT)),
    OldProcess("1.1.1", (BILLING, FULFILMENT)),
    OldProcess("0.8.2.2", (SEARCH, OldMember("returns-desk", "returns", threads=6))),
    OldProcess("0.8.2.2", (SEARCH,)),
    *(OldProcess(version, (MIGRATED,)) for version in ("1.1.1", "0.10.2.2", "0.8.2.2")),
    OldProcess("1.1.1", (OldMember("fraud-scoring", "payments", threads=2, settings=LONG_SESSION),), stopped=True),
    OldProcess(
        "0.10.2.2",
        (
            OldMember("fraud-scoring", "payments", threads=2),
            OldMember("loyalty-points", "payments", threads=2, offsets="both"),
            OldMember("shipping-labels", "shipments", threads=2, offsets="kafka"),
            OldMember("legacy-audit", "returns", limit=LEAVES_AFTER),
            OldMember("warehouse-sync", "shipments", limit=LEAVES_AFTER),
        ),
    ),
)
NEW_MEMBERS = (
    *(NewMember("notifications", ["orders"], settings=QUICK) for _ in range(3)),
    NewMember("recommendations", ["clicks"], delay_ms=250, settings=QUICK),
    *(NewMember("inventory-sync", ["shipments"], settings=QUICK) for _ in range(2)),
    NewMember("customer-360", ["orders", "payments", "clicks"], settings=QUICK),
    *(NewMember("fraud-alerts", ["payments"], assignor="cooperative-sticky", settings=QUICK) for _ in range(2)),
    NewMember("tax-reporting", ["invoices"], settings=QUICK),
    *(NewMember("sales-dashboard", ["orders"], assignor="roundrobin", settings=QUICK) for _ in range(2)),
    NewMember("email-digest", ["clicks", "returns"], settings=QUICK),
    NewMember("warehouse-sync", ["shipments"], settings=QUICK),
    NewMember("nightly-export", ["invoices"], until_end=True, settings=QUICK),
    NewMember("partner-feed", ["returns"], settings={**QUICK, "enable.auto.commit": False}),
)
