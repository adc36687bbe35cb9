"""Consumers of several hosts that print one client id are several consumers; rotated files of one are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.rebalances.sources import Rebalances, read_rebalances

AT = "[2025-01-02 03:04:{:02d},000] INFO [Consumer clientId=app, groupId=g] "


def member(number: int) -> str:
    return f"app-{number:08d}-1111-4111-8111-111111111111"


def joining(second: int) -> str:
    return f"{AT.format(second)}(Re-)joining group (a.B)\n"


def joined(second: int, generation: int, number: int, partition: int | None = None) -> str:
    identity = f"generationId={generation}, memberId='{member(number)}', protocol='range'"
    text = f"{AT.format(second)}Successfully joined group with generation Generation{{{identity}}} (a.B)\n"
    if partition is not None:
        text += f"{AT.format(second)}Adding newly assigned partitions: clicks-{partition} (a.B)\n"
    return text


def read(tmp_path: Path, texts: dict[str, str]) -> Rebalances:
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return read_rebalances(None, [str(tmp_path / name) for name in texts], zone="UTC")


def kinds(found: Rebalances) -> list[str]:
    return found.findings["finding"].to_list()


HOSTS = range(1, 6)


def test_five_healthy_hosts_are_no_alarm(tmp_path):
    found = read(tmp_path, {f"host-{n}.log": joining(0) + joined(3, 7, n, n) for n in HOSTS})
    assert kinds(found) == []
    assert found.generations.select("generation", "members").rows() == [(7, [member(n) for n in HOSTS])]
    assert found.members["consumer"].n_unique() == 5


def test_five_healthy_hosts_in_one_file_are_no_alarm(tmp_path):
    lines = "".join(joined(10 * generation, generation, n, n) for generation in HOSTS for n in HOSTS)
    assert set(kinds(read(tmp_path, {"all.log": lines}))) & {"rejoining", "owned_twice"} == set()


def test_prefixes_name_the_hosts(tmp_path):
    lines = "".join(f"host-{n}  | {line}\n" for n in (1, 2) for line in joined(3, 7, n, 0).splitlines())
    (finding,) = read(tmp_path, {"all.log": lines}).findings.rows(named=True)
    assert finding["finding"] == "owned_twice"
    assert "clicks-0 belongs to app in host-1 and app in host-2 in generation 7." in finding["sentence"]


@pytest.mark.parametrize("names", [("host-1.log", "host-2.log"), ("host-1/app.log", "host-2/app.log")])
def test_double_ownership_is_found(tmp_path, names):
    found = read(tmp_path, {name: joined(3, 7, n, 0) for n, name in enumerate(names, 1)})
    assert kinds(found) == ["owned_twice"]
    assert f"belongs to app in {names[0]} and app in {names[1]}" in found.findings["sentence"][0]


def test_double_ownership_is_found_in_one_file(tmp_path):
    found = read(tmp_path, {"all.log": joining(0) + joined(3, 7, 1, 0) + joining(4) + joined(5, 7, 2, 0)})
    assert "owned_twice" in kinds(found)


def test_a_host_that_never_gets_through_is_found(tmp_path):
    found = read(tmp_path, {"host-1.log": joining(0), "host-2.log": joining(1) + joined(3, 7, 2, 1)})
    (finding,) = found.findings.rows(named=True)
    assert (finding["finding"], finding["consumer"]) == ("unfinished", "app in host-1.log")


@pytest.mark.parametrize(
    "names",
    [
        ("app.log.1", "app.log"),
        ("app.log.2025-01-01", "app.log"),
        ("app-2025-01-01.0.log", "app.log"),
        ("app.2025-01-01.log", "app.2025-01-02.log"),
    ],
)
def test_rotated_files_are_one_consumer(tmp_path, names):
    older = joining(0)
    newer = joined(3, 7, 1, 0)
    found = read(tmp_path, dict(zip(names, (older, newer))))
    assert set(found.members["consumer"]) == {"app"}
    assert kinds(found) == []


def test_files_with_one_member_id_are_one_consumer(tmp_path):
    found = read(tmp_path, {"before.log": joined(3, 7, 1, 0), "after.log": joined(9, 8, 1, 0)})
    assert set(found.members["consumer"]) == {"app"}


def test_one_consumer_that_is_thrown_out_is_found(tmp_path):
    lines = "".join(joining(10 * n) + joined(10 * n + 3, n, n, 0) for n in HOSTS)
    (sentence,) = read(tmp_path, {"host-1.log": lines}).findings.filter(finding="rejoining")["sentence"]
    assert "app had 5 member ids" in sentence


def test_consumers_of_one_process_are_called_by_their_numbers(tmp_path):
    """librdkafka's consumers have one client id if the application sets none."""
    line = (
        "%4|1735787045.006|MAXPOLL|rdkafka#consumer-{}| [thrd:main]: Application maximum poll interval (9ms) exceeded\n"
    )
    found = read(tmp_path, {"all.log": "".join(line.format(number) for number in (10, 8))})
    assert found.findings["consumer"].to_list() == ["rdkafka#consumer-10", "rdkafka#consumer-8"]
    assert read(tmp_path, {"one.log": line.format(10)}).findings["consumer"].to_list() == ["rdkafka"]
