"""Signatures by SSH keys: over what was said, for nothing else, and as OpenSSH itself makes and takes them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from kit.errors import InputError
from kit.profile.identity.ssh_signature import NAMESPACE, fingerprint, public_key, sign, signer
from tests.unit.profile.identity.ssh_keys import KEYS, key_in

HAS_OPENSSH = shutil.which("ssh-keygen") is not None


@pytest.mark.parametrize("kind", KEYS)
def test_the_signer_is_found_and_only_over_the_same_content(tmp_path, kind):
    file, line = key_in(tmp_path, kind)
    for content in (b"", b"yes", b"x" * 100_000):
        signature = sign(content, file)
        assert signer(content, signature) == line
        assert signer(content + b" ", signature) is None


@pytest.mark.skipif(not HAS_OPENSSH, reason="no ssh-keygen here to compare with")
@pytest.mark.parametrize("kind", KEYS)
def test_openssh_takes_ours_and_we_take_openssh_s(tmp_path, kind):
    file, line = key_in(tmp_path, kind)
    (tmp_path / "allowed").write_text(f"ann {line}\n")
    (tmp_path / "signature").write_text(sign(b"yes", file))
    names = ["-f", str(tmp_path / "allowed"), "-I", "ann", "-n", NAMESPACE, "-s", str(tmp_path / "signature")]
    verify = ["ssh-keygen", "-Y", "verify", *names]
    assert subprocess.run(verify, input=b"yes", capture_output=True, check=False).returncode == 0
    assert subprocess.run(verify, input=b"no", capture_output=True, check=False).returncode != 0
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(file)]
    theirs = subprocess.run([*command, "-n", NAMESPACE], input=b"yes", capture_output=True, check=True).stdout.decode()
    assert (signer(b"yes", theirs), signer(b"no", theirs)) == (line, None)
    other = subprocess.run([*command, "-n", "git"], input=b"yes", capture_output=True, check=True).stdout.decode()
    assert signer(b"yes", other) is None
    listed = subprocess.run(["ssh-keygen", "-l", "-f", str(file)], capture_output=True, check=True, text=True).stdout
    assert fingerprint(line) == listed.split()[1]


def test_no_change_of_a_signature_is_taken(tmp_path):
    file, line = key_in(tmp_path)
    signature = sign(b"yes", file)
    first, *code, last = signature.strip().split("\n")
    body = "".join(code)
    for at in range(len(body)):
        changed = body[:at] + ("A" if body[at] != "A" else "B") + body[at + 1 :]
        # The last characters may hold bits that mean nothing.
        assert signer(b"yes", f"{first}\n{changed}\n{last}\n") in ((None, line) if at > len(body) - 4 else (None,))
    for wrong in ("", "x", first, f"{first}\n{last}", f"{first}\n{body[:40]}\n{last}", f"{first}\n{'é'}\n{last}"):
        assert signer(b"yes", wrong) is None


def test_a_key_that_cannot_sign_reports_why(tmp_path):
    file, line = key_in(tmp_path / "locked", passphrase="open sesame")
    with pytest.raises(InputError, match="is encrypted: its passphrase is needed"):
        sign(b"yes", file)
    with pytest.raises(InputError, match="is encrypted, and this is not its passphrase"):
        sign(b"yes", file, lambda: "wrong")
    assert signer(b"yes", sign(b"yes", file, lambda: "open sesame")) == line
    with pytest.raises(InputError, match="none can't be read: No such file"):
        sign(b"yes", tmp_path / "none")
    (tmp_path / "id.pub").write_text(line)
    with pytest.raises(InputError, match="give a private SSH key"):
        sign(b"yes", tmp_path / "id.pub")


def test_a_line_that_is_no_public_key(tmp_path):
    _, line = key_in(tmp_path)
    assert public_key(f" {line} ann@laptop\n") == line
    for wrong in ("", "ssh-ed25519", "ssh-ed25519 AAAA", "ann " + line, "AAAA"):
        with pytest.raises(ValueError, match="it is no"):
            public_key(wrong)
