"""Controllers and brokers of 3.9.1 that take tokens, and controllers that take certificates: read before and after the
copy. With certificates, all chains have an intermediate authority that no trust store has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kit.errors import AuthenticationFailed, PartialRead
from kit.lab import Lab
from kit.profile.security.tokens import provider_of
from tests.interop.kraft_logins import CertificateLab, TokenLab
from tests.servers.awaiting import awaited
from tests.servers.issuer import SECRET, Issuer
from tests.servers.kraft_walk import KraftWalk
from tests.soak import soak_only

pytestmark = [soak_only, pytest.mark.timeout(600)]
NEVER_KNOWN = {"Z14", "Z13", "R03"}
"""The checks with no known answer: whether controllers may use znodes that only nodes may write; and what only the
nodes' files have.
"""
SHAPE = {"brokers": 1, "controllers": 1, "secured": True}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with TemporaryDirectory() as folder, Issuer(Path(folder)) as running:
        yield running


@pytest.fixture(scope="module", params=["tokens", "certificates"])
def lab(request: pytest.FixtureRequest, issuer: Issuer) -> Iterator[Lab]:
    with TokenLab(issuer, **SHAPE) if request.param == "tokens" else CertificateLab(**SHAPE) as running:
        yield running


@pytest.fixture(scope="module")
def seen(lab: Lab) -> KraftWalk:
    found = KraftWalk(lab)
    lab.create_topic("orders", 2)
    for phase in ("controllers", "dual-write"):
        lab.migration.reach(phase)
        awaited(
            lambda phase=phase: found.run(f"status in {phase}", "kraft", "status"), lambda it: it.exit_code == 0, phase
        )
        found.run(f"preflight in {phase}", "kraft", "preflight", "--json")
    found.run("diff", "kraft", "diff")
    found.run("connect", "connect", "--json")
    return found


@pytest.mark.parametrize("phase", ["controllers", "dual-write"])
def test_status_and_preflight_read_every_node(seen: KraftWalk, phase: str) -> None:
    status = seen.printed[f"status in {phase}"].output
    assert f"phase {phase.replace('-', ' ')}" in status
    assert "controller 3000 leads" in status
    rows = json.loads(seen.printed[f"preflight in {phase}"].stdout)
    unknown = {each["check_id"] for each in rows if each["is_met"] is None}
    assert unknown <= NEVER_KNOWN | ({"R02"} if phase == "controllers" else set()), rows  # R02 compares both stores.


def test_both_stores_are_compared_by_the_log_of_a_controller(seen: KraftWalk) -> None:
    assert seen.printed["diff"].exit_code == 0, seen.printed["diff"].output


def test_the_check_of_the_profile_reaches_the_controller(seen: KraftWalk) -> None:
    rows = json.loads(seen.printed["connect"].stdout)
    of_controller = {row["tried"]: row["state"] for row in rows if row["component"].startswith("controller")}
    assert of_controller.keys() == {"DNS", "TCP", "TLS", "login"}
    assert "failed" not in of_controller.values()  # The certificates of the lab end soon, which is a warning.


def test_a_login_that_is_refused_is_reported_and_no_secret_is(seen: KraftWalk, lab: Lab, issuer: Issuer) -> None:
    text = seen.file.read_text(encoding="utf-8")
    lines = text.splitlines()
    lacking = [line for line in lines if not line.startswith(("certificate_file", "key_file"))]
    provider_of.cache_clear()
    issuer.claims = {"aud": "billing"}
    try:
        seen.file.write_text("\n".join(lacking), encoding="utf-8")
        ended = seen.run("refused", "kraft", "status")
    finally:
        seen.file.write_text(text, encoding="utf-8")
        issuer.claims = {}
        provider_of.cache_clear()
    by_token = lacking == lines
    assert ended.exit_code == (AuthenticationFailed if by_token else PartialRead).exit_code, ended.output
    assert ("audience billing" if by_token else "set certificate_file and key_file in security.kafka") in ended.output
    shown = "".join(each.output for each in seen.printed.values())
    assert [secret for secret in (SECRET, *issuer.issued, *lab.secrets.values()) if secret in shown] == []
