"""Logs of consumers and brokers → a table of coordination events, by Spark's tasks.

A room of its own: what ``kit.read`` asks servers for fits on one machine and knows no Spark; logs are many and large,
so Spark's tasks read them: first ``sifting`` keeps the lines that may matter, then ``telling`` makes events of them. By
columns: no line passes through Python. They judge nothing: ``kit.analyze.rebalances.attempts`` tells the story.

``layouts``: how a line says when and who; ``wordings``: what clients print, by version; ``fields``: ids, partitions and
reasons in a message; ``texts``: how patterns are put to a column; ``entries``: what belongs to one entry; ``records``:
what is made of a line; ``lines``: the one pass over the files; ``accounts``: of every file; ``events``: all of it
together.
"""

from kit.logs.events import ClientLogs, read_client_logs, verify_logs

__all__ = ["ClientLogs", "read_client_logs", "verify_logs"]
