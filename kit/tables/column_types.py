"""Types of columns that are narrower than Python's."""

from __future__ import annotations

from typing import Annotated

Binary = Annotated[bytes, "binary"]
Int32 = Annotated[int, "int32"]
"""Ids, partitions and znode versions: 32 bits in both protocols. A plain ``int`` is 64 bits wide."""
