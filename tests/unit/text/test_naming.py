"""Lists stand in sentences as people write them."""

from __future__ import annotations

from kit.text.naming import named


def test_names_with_braces_stay_as_they_are():
    assert named(["{0}", "{}"], "group {} has", "groups {} have") == "groups {0} and {} have"
