"""``offramp rebalances -``: a log that is pasted."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from kit.cli.main import app
from kit.errors import InputError

LOG = "web-1 | 2021-02-03 04:05:06,007 - kafka.coordinator - INFO - Successfully joined group pies with generation 7\n"


def test_a_log_is_read_from_standard_input():
    done = CliRunner().invoke(app, ["rebalances", "-", "--json", "--zone", "UTC"], input=LOG)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["members"]
    assert (row["group_id"], row["generation"]) == ("pies", 7)


def test_nothing_pasted_is_refused():
    done = CliRunner().invoke(app, ["rebalances", "-"], input="")
    assert done.exit_code == InputError.exit_code
    assert "standard input, which is empty" in " ".join(done.output.split())
