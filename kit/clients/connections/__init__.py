"""Check every connection of a profile, layer by layer: names, TCP, TLS, logins, rights. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kit.clients.broker_client import Deadline
from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import CONNECT_TIMEOUT_S, ZOOKEEPER_PORT, connect_kafka, connect_zookeeper, kafka_settings
from kit.clients.connections.certificates import check_files
from kit.clients.connections.check import FAILED, OK, Check, failed
from kit.clients.connections.logins import check_kerberos, check_token
from kit.clients.connections.network import check_network
from kit.clients.connections.rights import check_kafka_rights, check_zookeeper_rights
from kit.clients.mechanisms import KAFKA_PORT
from kit.clients.nodes import NodeClient, api_versions, ask_node
from kit.errors import OfframpError, WrongCluster
from kit.profile import Profile
from kit.profile.security.clients import BY_TOKEN
from kit.profile.security.refusals import who
from kit.profile.security.settings import GSSAPI

__all__ = ["Check", "check_connections"]


def check_connections(
    profile: Profile, timeout_s: float = CONNECT_TIMEOUT_S, tell: Callable[[Check], None] = lambda _: None
) -> list[Check]:
    """One row per component and layer, in the order in which they were tried; ``tell`` gets each at once.

    A layer that fails ends the checks of its address. No error is raised for a component.
    """
    rows = []
    for row in _checks(profile, timeout_s):
        tell(row)
        rows.append(row)
    return rows


def _checks(profile: Profile, timeout_s: float) -> Iterator[Check]:
    security = profile.security
    yield from check_files(security.kafka)
    yield from check_files(security.zookeeper)
    if security.kafka.uses_sasl and security.kafka.mechanism in BY_TOKEN:
        yield from check_token(security.kafka)
    if security.kafka.uses_sasl and security.kafka.mechanism == GSSAPI:
        yield from check_kerberos("Kerberos of brokers", security.kafka, "kafka")
    if security.zookeeper.mechanism == GSSAPI:
        yield from check_kerberos("Kerberos of ZooKeeper", security.zookeeper, "zookeeper")
    reached = []
    for address in _addresses(profile.bootstrap_servers):
        rows = list(_check_broker(profile, address, timeout_s))
        yield from rows
        if not any(row.state == FAILED for row in rows):
            reached.append(address)
    if reached:
        yield from _check_brokers(replace(profile, bootstrap_servers=",".join(reached)), timeout_s)
    if profile.zookeeper_connect:
        yield from _check_zookeeper(profile, timeout_s)
    for address in profile.kraft.addresses:
        yield from _check_controller(profile, address, timeout_s)


def _addresses(servers: str) -> list[str]:
    return [each.strip() for each in servers.split(",") if each.strip()]


def _check_broker(profile: Profile, address: str, timeout_s: float) -> Iterator[Check]:
    alone = replace(profile, bootstrap_servers=address)
    return _check_login(profile, "broker", address, timeout_s, lambda: connect_kafka(alone, timeout_s).close())


def _check_controller(profile: Profile, address: str, timeout_s: float) -> Iterator[Check]:
    def connect() -> object:
        return ask_node(kafka_settings(profile), address, _ask_versions, timeout_s)

    return _check_login(profile, "controller", address, timeout_s, connect)


def _check_login(
    profile: Profile, role: str, address: str, timeout_s: float, connect: Callable[[], object]
) -> Iterator[Check]:
    """The network up to TLS, then the login, which ``connect`` tries."""
    component, security = f"{role} {address}", profile.security.kafka
    rows = list(check_network(component, address, KAFKA_PORT, timeout_s, security if security.uses_tls else None))
    yield from rows
    if rows[-1].state == FAILED:
        return
    try:
        connect()
    except OfframpError as error:
        yield failed(component, "login", error)
    else:
        yield Check(component, "login", OK, f"The {role} accepts this {_login(profile)}.")


def _login(profile: Profile) -> str:
    security = profile.security.kafka
    return (
        who(security) if security.uses_sasl or security.certificate_file is not None else "connection without a login"
    )


def _check_brokers(profile: Profile, timeout_s: float) -> Iterator[Check]:
    try:
        client = connect_kafka(profile, timeout_s, is_patient=False)
    except OfframpError as error:
        yield failed("brokers", "requests", error)
        return
    try:
        actual = fetch_metadata(client, timeout_s).cluster_id or "(none)"
        if profile.cluster_id not in (None, actual):
            problem = WrongCluster(
                f"The profile expects cluster id {profile.cluster_id}; the brokers answer as {actual}. Compare "
                "bootstrap_servers and cluster_id."
            )
            yield failed("brokers", "cluster id", problem)
        else:
            yield Check("brokers", "cluster id", OK, f"The brokers answer as {actual}.")
        yield from check_kafka_rights(client)
    except OfframpError as error:
        yield failed("brokers", "requests", error)
    finally:
        client.close()


def _check_zookeeper(profile: Profile, timeout_s: float) -> Iterator[Check]:
    servers, slash, chroot = str(profile.zookeeper_connect).partition("/")
    security = profile.security.zookeeper
    for address in _addresses(servers):
        component = f"ZooKeeper {address}"
        rows = list(
            check_network(component, address, ZOOKEEPER_PORT, timeout_s, security if security.uses_tls else None)
        )
        yield from rows
        if rows[-1].state == FAILED:
            continue
        one = replace(profile, zookeeper_connect=address + slash + chroot)
        try:
            with connect_zookeeper(one, timeout_s) as client:
                mechanism = security.sasl_mechanism or ("digest" if security.digest is not None else None)
                how = "connection without a login" if mechanism is None else f"login ({mechanism})"
                yield Check(component, "login", OK, f"The server accepts this {how}.")
                yield from check_zookeeper_rights(component, client)
        except OfframpError as error:
            yield failed(component, "login", error)


async def _ask_versions(client: NodeClient, deadline: Deadline) -> object:
    return await client.ask(api_versions(), client.node, deadline)
