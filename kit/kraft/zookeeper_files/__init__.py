"""ZooKeeper's own files, without a server: snapshots and transaction logs of 3.4 to 3.9 → znodes, and their history.

``files``: which files, uncompressed; ``jute``: ZooKeeper's encoding; ``snapshot``, ``transactions``: what is in them;
``rows``: as tables, without secrets; ``state``: a snapshot and the changes after it.
"""
