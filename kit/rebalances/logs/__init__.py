"""Logs of consumers and brokers → a table of coordination events, by Spark's tasks.

What ``kit.groups.read`` asks servers for fits on one machine. Logs are many and large, so Spark's tasks read them:
``scan`` keeps the lines that may matter, ``extract`` makes events of them. Both work on columns: no line passes
through Python. Nothing here judges: ``kit.rebalances.analyze`` does.

- ``layouts``: how a line reports when and who.
- ``foreign``: lines in no known layout; ``known_text``, ``printed_times``: what is searched for in them;
  ``not_logged``: what is pasted beside logs.
- ``wordings``: what clients and brokers print, by version.
- ``fields``, ``library_fields``: ids, partitions and reasons in a message;
  ``texts``: how patterns are applied to a column.
- ``multiline``: which lines belong to one entry; ``records``: when an entry was, who wrote it, its wording.
- ``batching``, ``parsing``, ``task_summary``: the parts of ``extract``.
- ``lines``: the one pass over the files; ``file_summary``: what became of each; ``events``: the whole read.
"""

from kit.rebalances.logs.events import ClientLogs, read_client_logs, verify_logs

__all__ = ["ClientLogs", "read_client_logs", "verify_logs"]
