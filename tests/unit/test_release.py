"""A release has its licence, version, container, schedule; ``tests/browser/test_wheel.py`` has the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version as installed_version
from pathlib import Path

import pytest
import typer
import yaml

from kit.cli.main import app
from kit.profile import load_profile
from kit.profile.release import version
from tests.docs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPLOY = ROOT / "deploy"


def test_the_licence_that_the_metadata_names_is_there_as_a_whole():
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert [(ROOT / name).is_file() for name in PROJECT["project"]["license-files"]] == [True, True]
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n" in text
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text


# The version


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    git(tmp_path, "init", "--quiet")
    (tmp_path / "code.py").write_text("a = 1\n", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def head(folder: Path) -> str:
    words = ["git", "-C", str(folder), "rev-parse", "--short=9", "HEAD"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("how", ["as committed", "packed", "detached", "worktree"])
def test_a_checkout_names_its_present_commit(checkout, how):
    folder = checkout
    if how == "packed":
        git(checkout, "pack-refs", "--all")
    elif how == "detached":
        git(checkout, "checkout", "--quiet", "--detach")
    elif how == "worktree":
        folder = checkout / "other"
        git(checkout, "worktree", "add", "--quiet", str(folder))
    version.cache_clear()
    assert version(folder) == f"{installed_version('offramp').partition('+')[0]}+g{head(folder)}"


@pytest.mark.parametrize("what", ["nothing", "a damaged file", "an empty repository"])
def test_without_a_commit_the_version_is_the_installed_one(tmp_path, what):
    if what == "a damaged file":
        (tmp_path / ".git").write_bytes(b"\xff\n")
    elif what == "an empty repository":
        git(tmp_path, "init", "--quiet")
    version.cache_clear()
    assert version(tmp_path) == installed_version("offramp")


SCM = "import setuptools_scm as s; print(s.get_version(root='.', fallback_version={!r}))"


def test_the_version_of_a_build_comes_from_the_tag_or_is_the_fallback(checkout):
    fallback = PROJECT["tool"]["setuptools_scm"]["fallback_version"]
    assert _built(checkout, fallback).startswith("1.0.0.dev1+g")  # no tag
    git(checkout, "tag", "v1.0.0")
    assert _built(checkout, fallback) == "1.0.0"
    shutil.rmtree(checkout / ".git")
    assert _built(checkout, fallback) == fallback


def _built(folder: Path, fallback: str) -> str:
    words = [sys.executable, "-c", SCM.format(fallback)]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


# The container, and the schedule on Kubernetes

INSTRUCTIONS = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "ENTRYPOINT", "CMD"}


def dockerfile() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line and line[0] != "#"]


def cronjob() -> dict[str, dict]:
    return {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "cronjob.yaml").read_text(encoding="utf-8"))}


def container() -> dict:
    (found,) = cronjob()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return found


def test_the_dockerfile_installs_the_wheel_and_runs_the_command_as_no_root():
    steps = dockerfile()
    assert [word for word, _ in steps if word not in INSTRUCTIONS] == []
    facts = dict(steps)
    python = re.fullmatch(r"python:(\d+\.\d+)-slim", facts["FROM"])
    assert python
    assert f">={python[1]}" == PROJECT["project"]["requires-python"]
    assert facts["COPY"].startswith("dist/offramp-*.whl ")
    assert facts["ENTRYPOINT"] == '["offramp"]'
    assert PROJECT["project"]["scripts"].keys() == {"offramp"}
    assert int(facts["USER"]) > 0
    variable = facts["ENV"].partition("=")[0]
    assert f'"{variable}"' in (ROOT / "kit/profile/__init__.py").read_text(encoding="utf-8")


def test_the_cronjob_runs_a_verb_with_its_options_on_what_it_mounts():
    verb, *words = container()["args"]
    command = typer.main.get_command(app).get_command(None, verb)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    mounted = {each["mountPath"] for each in container()["volumeMounts"]}
    used = [Path(word) for word in words if word.startswith("/")]
    assert all(any(path.is_relative_to(place) for place in mounted) for path in used)
    spec = cronjob()["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert {each["name"] for each in container()["volumeMounts"]} == {each["name"] for each in spec["volumes"]}
    assert str(spec["securityContext"]["runAsUser"]) == dict(dockerfile())["USER"]
    assert f"-t {container()['image']} " in (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")


def test_the_profile_of_the_cronjob_is_one_and_its_secret_is_named(tmp_path, monkeypatch):
    text = cronjob()["ConfigMap"]["data"]["offramp.toml"]
    (secret,) = re.findall(r'env = "(\w+)"', text)
    monkeypatch.setenv(secret, "told")
    (tmp_path / "offramp.toml").write_text(text, encoding="utf-8")
    assert load_profile(None, tmp_path / "offramp.toml").name == "production"
    (source,) = container()["envFrom"]
    guide = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    assert f"secret generic {source['secretRef']['name']} --from-literal={secret}=" in guide
