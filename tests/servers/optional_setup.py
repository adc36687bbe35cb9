"""``python -m tests.servers.optional_setup``: install what the tests of Kerberos and Amazon MSK need, if it can be had.

Debian's packages need root and apt-get; the Python packages need a compiler. Whatever fails is left out: the tests are
then skipped, and say what is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

from tests.servers.realm import PROGRAMS, missing

BUILD = ("gcc", "python3-dev", "libkrb5-dev")
MODULES = ("gssapi==1.12.0", "k5test==0.10.4", "decorator")
SECONDS = 300


SIGNER = "aws-msk-iam-sasl-signer-python==1.0.2"


def main() -> None:
    if find_spec("aws_msk_iam_sasl_signer") is None or find_spec("botocore") is None:
        _tried(sys.executable, "-m", "pip", "install", "-q", SIGNER)
    if not missing():
        return
    if "Debian's" in missing() and shutil.which("apt-get") and os.geteuid() == 0:
        done = _tried("apt-get", "install", "-y", "-q", "--no-install-recommends", *PROGRAMS.values(), *BUILD)
        if not done and _tried("apt-get", "update", "-q"):
            _tried("apt-get", "install", "-y", "-q", "--no-install-recommends", *PROGRAMS.values(), *BUILD)
    if shutil.which("krb5-config"):
        _tried(sys.executable, "-m", "pip", "install", "-q", "--no-deps", *MODULES)
    if missing():
        print(f"[setup] {missing()}")


def _tried(*command: str) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
