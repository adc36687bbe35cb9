"""Members may put anything into the coordinator's bytes: it is parsed, or reported as what it isn't."""

from __future__ import annotations

from hypothesis import example, given, settings, strategies as st

from kit.clients.consumer_protocol import parse_member

PARTS = st.one_of(
    st.integers(-(2**15), 2**15 - 1).map(lambda it: it.to_bytes(2, "big", signed=True)),
    st.integers(-(2**31), 2**31 - 1).map(lambda it: it.to_bytes(4, "big", signed=True)),
    st.sampled_from([b"\x00\x00", b"\x00\x01", b"\x00\x03", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01", b"\xff\xff"]),
    st.binary(max_size=20),
)
BYTES = st.one_of(st.binary(max_size=60), st.lists(PARTS, max_size=12).map(b"".join))


@settings(max_examples=500, deadline=None)
@given(BYTES, BYTES)
@example(bytes.fromhex("0000ffffffff00000000"), b"")  # Lists of length -1: none.
@example(b"", bytes.fromhex("0000ffffffff00000000"))
@example(b"", bytes.fromhex("00000000000100016fffffffff00000000"))
@example(bytes.fromhex("000000000001800000000000"), b"")  # A topic of length -32768: one without a name.
def test_bytes_of_strangers_never_end_a_read(subscription: bytes, assignment: bytes) -> None:
    subscribed, assigned, problem = parse_member(subscription, assignment)
    assert problem is None or "can't be decoded" in problem
    assert all(isinstance(topic, str) for topic in subscribed)
    assert all(-(2**31) <= partition < 2**31 for _, partition in assigned)
