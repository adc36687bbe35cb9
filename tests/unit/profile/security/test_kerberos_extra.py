"""Kerberos without its package: the error names the extra and the packages that compiling it needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.errors import SetupError

PROFILE = """[clusters.old]
bootstrap_servers = "127.0.0.1:1"
[clusters.old.security.kafka]
protocol = "SASL_PLAINTEXT"
mechanism = "GSSAPI"
"""


def test_a_verb_names_the_extra_and_the_packages_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before it connects: nothing listens there."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    file = tmp_path / "offramp.toml"
    file.write_text(PROFILE, encoding="utf-8")
    ended = CliRunner().invoke(app, ["groups", "--profile-file", str(file)])
    assert ended.exit_code == SetupError.exit_code, ended.output
    said = " ".join(ended.output.split())
    for each in ("pip install 'offramp[kerberos]'", "libkrb5-dev krb5-user", "krb5-devel krb5-workstation"):
        assert each in said
