"""The lab's few Java sources, compiled without ``javac``: by the Janino in PySpark's wheel, once per change."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from kit.errors import SetupError
from kit.lab.java import jars
from kit.lab.java.resolver import spark_jar
from kit.spark.java import cache_folder, java_command

SOURCES = Path(__file__).parent
COMPILER = "Compile.java"


def classes(source: str, jar_set: jars.JarSet) -> Path:
    """Jar with the classes of ``source`` (a file beside this module), compiled against ``jar_set``.

    Kept in the cache folder under the digest of source and jars. Raises SetupError when it doesn't compile.
    """
    text = (SOURCES / source).read_bytes() + (SOURCES / COMPILER).read_bytes()
    libraries = jars.ensure([jar_set])[jar_set.name]
    target = (
        cache_folder()
        / "classes"
        / f"{Path(source).stem}-{hashlib.sha256(text + libraries.name.encode()).hexdigest()[:12]}.jar"
    )
    if not target.exists():
        compile_into(target, source, libraries)
    return target


def compile_into(target: Path, source: str, libraries: Path) -> None:
    """Compile into a draft beside ``target`` and move it there in one step.

    A jar, not a folder: Java shares no classes of folders (see :mod:`kit.lab.java.class_archive`).
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=target.parent) as draft:
        folder = Path(draft) / "classes"
        folder.mkdir()
        janino = [str(spark_jar("janino-*.jar")), str(spark_jar("commons-compiler-*.jar"))]
        path = os.pathsep.join([*janino, f"{libraries}/*"])
        command = [java_command(), "-Xmx128m", "-cp", path, "org.codehaus.janino.SimpleCompiler"]
        command += [str(SOURCES / COMPILER), "Compile", str(folder), str(SOURCES / source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 or not any(folder.iterdir()):
            raise SetupError(
                f"{source} could not be compiled; see the compiler's output:\n{done.stdout[:2000]}{done.stderr[:2000]}"
            )
        Path(shutil.make_archive(str(folder), "zip", folder)).replace(target)
