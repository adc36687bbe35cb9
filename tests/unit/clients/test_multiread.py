"""multiRead's answers, byte by byte: found, gone, refused."""

from __future__ import annotations

import struct
from types import SimpleNamespace

from kazoo.exceptions import NoAuthError

from kit.clients import multiread
from tests.limits import lower


def header(kind: int, done: bool = False, error: int = 0) -> bytes:
    return struct.pack(">i?i", kind, done, error)


def stat(**fields: int) -> bytes:
    return struct.pack(">qqqqiiiqiiq", *(fields.get(name, 0) for name in multiread.STAT_FIELDS))


def answer(*parts: bytes) -> SimpleNamespace:
    body = b"".join(parts) + header(-1, True, -1)
    return SimpleNamespace(get=lambda timeout: body)


def found(data: bytes | None, **fields: int) -> bytes:
    length = -1 if data is None else len(data)
    return header(4) + struct.pack(">i", length) + (data or b"") + stat(**fields)


def refused(code: int) -> bytes:
    return header(-1, error=code) + struct.pack(">i", code)


def test_data_keeps_the_order_and_the_stats_of_what_was_found():
    znodes = multiread._parse_data(
        answer(found(b"100", mzxid=7, version=3), refused(-101), found(None, czxid=9), refused(-102), found(b""))
    )
    assert znodes.data == [b"100", None, b"", None, b""]
    assert znodes.stat("mzxid") == [7, None, 0, None, 0]
    assert znodes.stat("czxid") == [0, None, 9, None, 0]
    assert [type(error) for error in znodes.refusals.values()] == [NoAuthError]
    assert list(znodes.refusals) == [3]
    assert znodes[0] == multiread.Znode(b"100", 0, 7, 0, 3, 0)
    assert znodes[1] is None
    assert isinstance(znodes[3], NoAuthError)


def test_an_answer_without_items_and_one_without_anything_found():
    assert multiread._parse_data(answer()).data == []
    znodes = multiread._parse_data(answer(refused(-101), refused(-101)))
    assert znodes.data == [None, None]
    assert znodes.stats == [None, None]


def names(*words: str) -> bytes:
    encoded = [word.encode() for word in words]
    vector = b"".join(struct.pack(">i", len(word)) + word for word in encoded)
    return header(8) + struct.pack(">i", len(words)) + vector


def test_children_are_names_or_nothing_or_a_refusal():
    parsed = multiread._parse_children(answer(names("a", "bücher"), refused(-101), names(), refused(-102)))
    assert parsed[:3] == [["a", "bücher"], None, []]
    assert isinstance(parsed[3], NoAuthError)


def test_children_that_begin_like_those_before_them_are_their_own():
    lists = [[], ["0", "1"], ["0", "1"], ["0"], ["0", "1", "2"], ["0", "2"], ["0", "1"], ["0", "10"], []]
    octets = [names(*each) for each in lists]
    assert multiread._parse_children(answer(*octets)) == lists
    between = [each for some in octets for each in (some, refused(-101))]
    assert multiread._parse_children(answer(*between))[::2] == lists


def test_requests_are_bounded_and_in_order():
    under_way, most = [], 0

    def send(paths):
        nonlocal most
        under_way.append(paths)
        most = max(most, len(under_way))
        return paths

    def receive(paths):
        under_way.remove(paths)
        return paths

    batches = list(multiread._pipelined(send, receive, [str(n) for n in range(25)], per_request=4, in_flight=3))
    assert [path for batch in batches for path in batch] == [str(n) for n in range(25)]
    assert most == 3


def test_a_request_has_neither_too_many_nor_too_long_paths(monkeypatch):
    lower(monkeypatch, multiread, OCTETS_PER_REQUEST=10)
    paths = ["/a", "/b", "/c", "/" + "ä" * 20, "/dddd", "/ee", "/f", "/g\ud800"]
    portions = list(multiread.portions(paths, 3))
    assert portions == [["/a", "/b", "/c"], ["/" + "ä" * 20], ["/dddd", "/ee", "/f"], ["/g\ud800"]]
    assert list(multiread.portions([], 3)) == []
