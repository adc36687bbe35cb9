"""Logs of consumers and brokers → a table of coordination events, by Spark's own functions.

A room of its own: what ``kit.read`` asks servers for fits on one machine and knows no Spark; logs are many and large,
so Spark reads them, and no line passes through Python. It judges nothing: ``kit.analyze.rebalances`` tells the story.

``layouts``: how a line says when and who; ``wordings``: what clients print, by version; ``fields``: ids, partitions and
reasons in a message; ``sql``: how patterns are put to Spark; ``entries``: which lines matter, and what belongs to one
entry; ``lines``: the one pass over the files; ``records``: what is made of its lines; ``accounts``: of every file;
``events``: all of it together.
"""

from kit.logs.events import ClientLogs, read_client_logs, verify_logs

__all__ = ["ClientLogs", "read_client_logs", "verify_logs"]
