"""``__cluster_metadata``, the log in which KRaft keeps a cluster's metadata → records, and the image they add up to.

A room of its own beside ``kit.rebalances.offsets_topic``: Spark's tasks read many files. It judges nothing and
writes nothing.

    log = read_log("copied/__cluster_metadata-0")         # or read_log(Controllers("host:9093"))
    print(log)                                             # n records by type, n unknown, gaps
    log.partitions, log.items, log.nodes, log.records      # polars

``batches``: bytes → records; ``fields``, ``record_types.json``: Kafka's encoding and its record types;
``records``: values → fields; ``secrets``: what is redacted; ``transactions``, ``continuity``: what counts, and what
is missing; ``image``: replay; ``files``, ``controllers``: where the bytes come from; ``file_summary``: the account;
``rows``: tables; ``tasks``: many files by Spark; ``log``: all of it together. A big log in order is read by columns:
``record_shapes``, ``bulk``, ``folding``; ``replay``: one way or the other.

Names are imported when first used: a copied log needs no client of a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.kraft.metadata_log.controllers import Controllers
    from kit.kraft.metadata_log.log import MetadataLog, read_log, verify_log
    from kit.kraft.metadata_log.tasks import MetadataFiles, read_files


__all__ = ["Controllers", "MetadataFiles", "MetadataLog", "read_files", "read_log", "verify_log"]
_, __getattr__ = lazy_names(__name__)
