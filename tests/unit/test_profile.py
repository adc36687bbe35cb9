"""Profiles: what is wrong is named, and a secret is never part of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kit.errors import ProfileError
from kit.groups.read.whole_cluster import chosen_groups
from kit.profile import FILE_VARIABLE, GroupDeploySettings, SparkSettings, load_profile
from kit.profile.security.secret import Secret

GOOD = """
[clusters.lab]
bootstrap_servers = "127.0.0.1:1"
zookeeper_connect = "127.0.0.1:2/kafka"
cluster_id = "abc"
[clusters.lab.spark]
remote = "sc://127.0.0.1:3"
[clusters.lab.security.kafka]
protocol = "SASL_SSL"
mechanism = "SCRAM-SHA-512"
username = "alice"
password = { env = "OFFRAMP_TEST_PASSWORD" }
ca_file = "ca.pem"
[clusters.lab.security.zookeeper]
digest = { file = "digest.txt" }
"""


def write(folder, text, name="offramp.toml"):
    path = folder / name
    path.write_text(text)
    return path


def test_everything_is_read_and_files_are_relative_to_the_profile(tmp_path, monkeypatch):
    write(tmp_path, "user:secret\n", "digest.txt")
    monkeypatch.setenv("OFFRAMP_TEST_PASSWORD", "hunter2")
    profile = load_profile(file=write(tmp_path, GOOD))
    assert (profile.name, profile.bootstrap_servers, profile.zookeeper_connect) == (
        "lab",
        "127.0.0.1:1",
        "127.0.0.1:2/kafka",
    )
    assert profile.spark.remote == "sc://127.0.0.1:3"
    assert profile.security.kafka.ca_file == tmp_path / "ca.pem"
    assert profile.security.kafka.password.reveal() == "hunter2"
    assert profile.security.zookeeper.digest.reveal() == "user:secret"


def test_a_secret_shows_only_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("OFFRAMP_TEST_PASSWORD", "hunter2")
    profile = load_profile(file=write(tmp_path, GOOD))
    settings = {"sasl_plain_password": profile.security.kafka.password.reveal()}
    assert "hunter2" not in f"{profile!r} {profile} {settings} {settings!r}"
    assert Secret("x").encode() == b"x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[clusters.lab", "is not TOML"),
        ("", "names no cluster"),
        ("title = 1", "'title' at the top level of the file is unknown"),
        (
            "[clusters.lab]\nbootstrap_servers='a'\n[spark]\nmaster='local'\n[deploy]\nkind='manual'",
            "'spark', 'deploy' at the top level of the file is unknown. The only known section there is "
            r"\[clusters.NAME\], with its own sections spark, security, deploy, approvals, kraft",
        ),
        ("[clusters.lab]\nbootstrap_server = 'a'", "clusters.lab.bootstrap_server is not a known key"),
        ("[clusters.lab]\ncluster_id = 'a'", "clusters.lab.bootstrap_servers: Field required"),
        ("[clusters.lab]\nbootstrap_servers = 1", "clusters.lab.bootstrap_servers"),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nleave_out_groups=['tmp-(']",
            "leave_out_groups: 'tmp-(' is not a regular expression",
        ),
        ("[clusters]\nlab = 1", "clusters.lab is not a section"),
        ("[clusters.lab]\nbootstrap_servers='a'\nkraft.controllers='a:9093,b:'", "'b:' is no host:port"),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nsecurity.kafka.protocol='SASL_SSL'",
            "SASL_SSL needs mechanism, and the keys",
        ),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nsecurity.zookeeper.digest={env='A',file='b'}",
            "must be a reference",
        ),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nspark.master=7",
            "clusters.lab.spark.master: must be a text in quotes",
        ),
        ("[clusters.lab]\nbootstrap_servers='a'\nspark='local'", "clusters.lab.spark: must be a section"),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nspark.conf.x=1",
            "clusters.lab.spark.conf.x: must be a text in quotes",
        ),
        ("[clusters.lab]\nbootstrap_servers='a'\ndeploy.command='x'", "clusters.lab.deploy.command: must be a list"),
        (
            "[clusters.lab]\nbootstrap_servers='a'\ndeploy.timeout_s=true",
            "clusters.lab.deploy.timeout_s: must be a number",
        ),
        ("[clusters.lab]\nbootstrap_servers='a'\ndeploy.timeout_s=0", "timeout_s must be more than 0"),
        ("[clusters.lab]\nbootstrap_servers='a'\ndeploy.kind='x'", "kind: must be 'manual' or 'command' or 'lab'"),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nsecurity.zookeeper.username='kafka'",
            "clusters.lab.security.zookeeper: SASL needs username and password",
        ),
        (
            "[clusters.lab]\nbootstrap_servers='a'\nsecurity.zookeeper.check_host_name='no'",
            "clusters.lab.security.zookeeper.check_host_name: must be true or false",
        ),
        (
            "[clusters.lab]\nzookeeper='a'\nkraft.controler='b'\napprovals.longest_hours='c'",
            "clusters.lab.approvals.longest_hours: must be a number; clusters.lab.kraft.controler is not a known key; "
            "clusters.lab.bootstrap_servers: Field required; clusters.lab.zookeeper is not a known key",
        ),
    ],
)
def test_a_wrong_key_is_named(tmp_path, text, said):
    with pytest.raises(ProfileError, match=said.replace("(", r"\(")):
        load_profile(file=write(tmp_path, text))


@pytest.mark.parametrize(
    ("written", "said"),
    [('"hunter2"', "must be a reference"), ('{ evn = "hunter2" }', "kafka.password.evn is not a known key")],
)
def test_a_secret_written_into_the_file_is_refused_and_not_repeated(tmp_path, written, said):
    text = GOOD.replace('{ env = "OFFRAMP_TEST_PASSWORD" }', written)
    with pytest.raises(ProfileError, match=said) as caught:
        load_profile(file=write(tmp_path, text))
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_cluster_must_be_chosen_and_known(tmp_path):
    path = write(tmp_path, "[clusters.a]\nbootstrap_servers='x'\n[clusters.b]\nbootstrap_servers='y'")
    with pytest.raises(ProfileError, match="choose one of a, b"):
        load_profile(file=path)
    with pytest.raises(ProfileError, match="has no cluster 'c'; name one of a, b"):
        load_profile("c", path)
    assert load_profile("b", path).bootstrap_servers == "y"


def test_missing_secrets_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("OFFRAMP_TEST_PASSWORD", raising=False)
    security = load_profile(file=write(tmp_path, GOOD)).security
    with pytest.raises(ProfileError, match="OFFRAMP_TEST_PASSWORD is not set"):
        security.kafka.password.reveal()
    with pytest.raises(ProfileError, match=r"digest.txt can't be read"):
        security.zookeeper.digest.reveal()


def test_the_profile_is_searched_in_order(tmp_path, monkeypatch):
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    with pytest.raises(ProfileError, match="offramp lab up"):
        load_profile()
    write(tmp_path, "[clusters.above]\nbootstrap_servers='x'")
    assert load_profile().name == "above"
    monkeypatch.setenv(FILE_VARIABLE, str(write(tmp_path, "[clusters.named]\nbootstrap_servers='x'", "other.toml")))
    assert load_profile().name == "named"
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "none.toml"))
    with pytest.raises(ProfileError, match="there is no profile file"):
        load_profile()


def test_all_kinds_of_values_and_no_pydantic(tmp_path):
    text = """
[clusters.lab]
bootstrap_servers = "x"
spark.conf = { "spark.a" = "b" }
deploy = { kind = "command", command = ["deploy", "{group}"], timeout_s = 7, allow_any_characters = true }
security.zookeeper.ca_file = "~/ca.pem"
"""
    profile = load_profile(file=write(tmp_path, text))
    assert profile.spark == SparkSettings(conf={"spark.a": "b"})
    assert profile.deploy == GroupDeploySettings(
        kind="command", command=("deploy", "{group}"), timeout_s=7.0, allow_any_characters=True
    )
    assert profile.security.zookeeper.ca_file == Path.home() / "ca.pem"
    code = "import sys, kit.cli.main, kit.cli.groups; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_groups_that_are_left_out_are_read_only_if_a_pattern_asks_for_them(tmp_path):
    text = '[clusters.one]\nbootstrap_servers = "a:1"\nleave_out_groups = ["tmp-.*", "broken"]\n'
    profile = load_profile(file=write(tmp_path, text))
    accepts = chosen_groups(profile, ".*")
    assert [accepts(name) for name in ("orders", "tmp-1", "broken", "broken-not")] == [True, False, False, True]
    asked = chosen_groups(profile, "tmp-.*")
    assert [asked(name) for name in ("orders", "tmp-1")] == [False, True]
