"""``host:port`` of servers; an IPv6 address as host is in brackets (RFC 3986, 3.2.2)."""

from __future__ import annotations


def address_of(host: str | None, port: int | None) -> str:
    """Return the address as clients take it.

    >>> address_of("kafka-1", 9092), address_of("::1", 9092)
    ('kafka-1:9092', '[::1]:9092')
    """
    return f"[{host}]:{port}" if host is not None and ":" in host else f"{host}:{port}"


def host_and_port(address: str, default_port: int | None = None) -> tuple[str, int]:
    """Return the two parts of an address; ``default_port`` counts if it names none. Raises ValueError.

    >>> host_and_port("[::1]:9092"), host_and_port("zk-1", 2181), host_and_port("[::1]", 2181)
    (('::1', 9092), ('zk-1', 2181), ('::1', 2181))
    """
    given = address.strip()
    host, colon, port = given.rpartition(":")
    if not colon or given.endswith("]"):
        host, port = given, "" if default_port is None else str(default_port)
    return host.removeprefix("[").removesuffix("]"), int(port)
