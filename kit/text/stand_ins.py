"""Replace a secret where a server must take the replacement for one: random text of the same form."""

from __future__ import annotations

import re
import secrets
from string import ascii_lowercase, ascii_uppercase

_DIGITS = "123456789"
"""Without 0: a number that begins with it is no JSON."""
_STRUCTURE = frozenset('+/=,:{}[]"\\-_ \n')
"""The characters of the structure of base64, JSON and lists."""
_OF_THE_FORM = re.compile(
    r"(?:salt|stored_key|server_key|encryptedPassword|initializationVector)(?=[=:])"
    r"|(?:iterations=|iterations:|keyLength:|passwordLength:)[0-9]{1,9}(?![^,\"}])"
    r"|cipherAlgorithm:AES/(?:CBC|GCM|CFB|OFB|CTR)/(?:PKCS5Padding|NoPadding)(?![^,\"}])"
    r"|keyFactoryAlgorithm:PBKDF2WithHmacSHA[0-9]{1,3}(?![^,\"}])"
    r"|SCRAM-SHA-(?:256|512)(?![^=\":])"
)
"""The parts of a SCRAM credential and of an enciphered password that are no secret, and make it one that can be
parsed.
"""


def stand_in(secret: str) -> str:
    """Random letters for letters and digits for digits; what gives text its structure, and the names of parts, stay.

    So base64 stays base64 of the same length, and what a broker can't parse stays so in the same way.
    """
    found, end = list[str](), 0
    for kept in _OF_THE_FORM.finditer(secret):
        found += [_random(secret[end : kept.start()]), kept[0]]
        end = kept.end()
    return "".join([*found, _random(secret[end:])])


def _random(text: str) -> str:
    return "".join(map(_other, text))


def _other(letter: str) -> str:
    if letter.isdigit():
        return secrets.choice(_DIGITS)
    if letter.isalpha():
        return secrets.choice(ascii_uppercase if letter.isupper() else ascii_lowercase)
    return letter if letter in _STRUCTURE else secrets.choice("!#$%&*^~")
