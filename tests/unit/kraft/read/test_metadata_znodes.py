"""A password that a broker has enciphered is known in any order of its parts: it can't be compared with KRaft's."""

from __future__ import annotations

from itertools import permutations

import pytest

from kit.kraft.read.metadata_znodes import _fingerprint
from kit.text.fingerprints import Fingerprints, is_fingerprint, stars

PARTS = ("encryptedPassword:aHVzaA==", "passwordLength:14", "initializationVector:dmVj", "salt:c2Fs")


@pytest.mark.parametrize("parts", list(permutations(PARTS)))
def test_an_enciphered_password_has_no_fingerprint(parts):
    assert _fingerprint(",".join(parts), Fingerprints()) is None


@pytest.mark.parametrize("secret", ["opens-it", "a,b:c", "encryptedPassword:only", ""])
def test_any_other_password_has_one(secret):
    assert is_fingerprint(_fingerprint(secret, Fingerprints()))
    assert _fingerprint(secret, stars) is None
