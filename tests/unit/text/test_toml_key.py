"""A profile's name in a hint of what to write: the section that a person copies is the one that is read."""

from __future__ import annotations

import tomllib

from kit.text.visible import toml_key
from tests.generators.hostile import GROUPS


def test_a_name_as_a_part_of_a_sections_name():
    names = ["production", "eu.production", *GROUPS]
    sections = [tomllib.loads(f"[clusters.{toml_key(name)}.kraft]\nn = 1") for name in names]
    assert sections == [{"clusters": {name: {"kraft": {"n": 1}}}} for name in names]
