"""One cluster, connected: the only place where a profile becomes connections."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeAlias

from kafka import errors as kafka_errors
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException

from kit.clients.broker_client import BrokerClient
from kit.clients.broker_login import AUTHENTICATION_FAILURES, ControllersOnly, NobodyListens, refuses
from kit.clients.brokers import ClusterMetadata, fetch_cluster_ids, fetch_metadata
from kit.clients.mechanisms import remedy
from kit.clients.multiread import Znode, fetch_data, refusal
from kit.errors import AuthenticationFailed, ConnectError, WrongCluster
from kit.profile import Profile, load_profile
from kit.profile.security.clients import check_login, kafka_python_login, kazoo_login, librdkafka_login
from kit.profile.security.refusals import kafka_remedy, who, zookeeper_remedy
from kit.profile.security.tls_files import TlsSettings, client_context

CONNECT_TIMEOUT_S = 10.0
ZOOKEEPER_PORT = 2181
"""The port of an address that names none."""
ZookeeperConnection: TypeAlias = KazooClient
"""For the hints of who only hands a connection on to ``kit.groups.read``."""

# Both clients warn about every lost connection; without a handler of the user's that would go to the terminal.
for _client_name in ("kafka", "kazoo"):
    logging.getLogger(_client_name).addHandler(logging.NullHandler())
warnings.filterwarnings("ignore", "No chroot path exists")  # kazoo's; the error names it


class ZookeeperClient(KazooClient):  # type: ignore[misc]
    """``n_sent``: requests so far."""

    n_sent = 0

    def _call(self, request: Any, async_object: Any) -> Any:
        self.n_sent += 1
        return super()._call(request, async_object)


@dataclass(frozen=True)
class Cluster:
    """Connections to one cluster, whose id was checked; a context manager."""

    profile: Profile
    cluster_id: str
    broker_client: BrokerClient
    zookeeper: ZookeeperClient | None

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def n_sent(self) -> tuple[int, int]:
        """Requests so far to brokers and to ZooKeeper."""
        return self.broker_client.n_sent, self.zookeeper.n_sent if self.zookeeper is not None else 0

    def confirmed_id(self, needs_brokers: bool = True) -> str:
        """Ask the brokers and ZooKeeper for the cluster id now, and return it if it is the one from ``connect``.

        An address can lead to another cluster since then. ``needs_brokers=False``: ZooKeeper's answer is enough while
        no broker answers.

        Raises:
            WrongCluster: a broker or ZooKeeper answers as another cluster, or without an id.
            ConnectError: one of them does not answer.
            AuthenticationFailed: one of them refused a login that it accepted before.
        """
        try:
            ids = fetch_cluster_ids(self.broker_client, CONNECT_TIMEOUT_S)
        except AuthenticationFailed:
            raise
        except ConnectError:
            if needs_brokers or self.zookeeper is None:
                raise
            ids = frozenset()
        for other in sorted((each or "(none)" for each in ids), key=lambda each: each == self.cluster_id):
            if other != self.cluster_id:
                raise WrongCluster(
                    f"cluster {self.name!r}: offramp connected to cluster {self.cluster_id}, but a broker at"
                    f" {self.profile.bootstrap_servers} now answers as {other}. Nothing more was done. Check the"
                    " addresses in the profile, then connect again"
                )
        if self.zookeeper is not None:
            _check_zookeeper(
                self.profile, self.cluster_id, self.zookeeper, f"offramp connected to cluster {self.cluster_id}"
            )
        return self.cluster_id

    def close(self) -> None:
        self.broker_client.close()
        if self.zookeeper is not None:
            _stop(self.zookeeper)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: tuple[type[BaseException], BaseException, TracebackType] | None) -> None:
        self.close()


def connect(
    profile: Profile | str | None = None, timeout_s: float = CONNECT_TIMEOUT_S, is_patient: bool = True
) -> Cluster:
    """Connect to the brokers and, where the profile has it, to ZooKeeper.

    Servers that restart refuse connections for a while. A run waits for them until ``timeout_s`` (``is_patient``). A
    verb that only reads reports at once that no process listens at any of the addresses.

    Raises:
        ProfileError: no such profile, or a secret it names isn't there.
        ConnectError: no broker, or no ZooKeeper server, answered within ``timeout_s``.
        AuthenticationFailed: one of them refused the credentials.
        WrongCluster: the cluster id isn't the profile's, or ZooKeeper and the brokers are of different clusters.
    """
    if not isinstance(profile, Profile):
        profile = load_profile(profile)
    client = connect_kafka(profile, timeout_s, is_patient)
    zookeeper = None
    try:
        zookeeper = _connect_zookeeper(profile, timeout_s, is_patient) if profile.zookeeper_connect else None
        cluster_id = _check_identity(profile, fetch_metadata(client, timeout_s), zookeeper)
    except BaseException:  # Ctrl-C, too, while a server is waited for.
        client.close()
        if zookeeper is not None:
            _stop(zookeeper)
        raise
    return Cluster(profile, cluster_id, client, zookeeper)


@contextmanager
def connect_zookeeper(profile: Profile, timeout_s: float = CONNECT_TIMEOUT_S) -> Iterator[KazooClient]:
    """ZooKeeper alone, of a profile that names it, where no broker answers: its cluster id is checked as well.

    Raises:
        ConnectError, AuthenticationFailed, WrongCluster: as ``connect``.
    """
    client = _connect_zookeeper(profile, timeout_s)
    try:
        if profile.cluster_id is not None:
            _check_zookeeper(profile, profile.cluster_id, client, f"expected cluster id {profile.cluster_id}")
        yield client
    finally:
        _stop(client)


def connect_kafka(
    profile: Profile, timeout_s: float = CONNECT_TIMEOUT_S, is_patient: bool = True, **settings: Any
) -> BrokerClient:
    """Connect to the brokers alone; ``settings`` are kafka-python's, over those of the profile. ``is_patient``: see
    ``connect``.

    Raises:
        ConnectError, AuthenticationFailed: as ``connect``.
    """
    where = f"cluster {profile.name!r}: brokers {profile.bootstrap_servers}"
    security = profile.security.kafka
    check_login(security)
    given = kafka_settings(profile) | settings
    try:
        return BrokerClient(given, timeout_s, is_patient)
    except AUTHENTICATION_FAILURES as error:
        otherwise = f"{type(error).__name__}; {kafka_remedy(security)}"
        raise AuthenticationFailed(f"{where}: {who(security)} was refused: {remedy(given, otherwise)}") from None
    except NobodyListens:
        raise ConnectError(
            f"{where}: no process listens there. Check the ports in bootstrap_servers, and whether the brokers run"
        ) from None
    except ControllersOnly as error:
        raise ConnectError(
            f"{where}: {error.args[0]} is the port of a KRaft controller, which serves no client. Name a broker's "
            "listener in bootstrap_servers"
        ) from None
    except kafka_errors.KafkaError as error:
        raise ConnectError(
            f"{where}: none answered within {timeout_s:g} s ({error}); check the addresses, and whether that listener "
            f"speaks {security.protocol} and has a certificate that an authority in the profile's ca_file has signed"
            f"{_own_hint(security)}"
        ) from None
    except (OSError, ValueError) as error:
        raise ConnectError(f"{where}: {error}") from None


def kafka_settings(profile: Profile) -> dict[str, Any]:
    """A profile's brokers and their security as kafka-python's arguments. Raises as ``client_context``."""
    security = profile.security.kafka
    if security.uses_tls:
        client_context(security)
    settings: dict[str, Any] = {
        "bootstrap_servers": [server.strip() for server in profile.bootstrap_servers.split(",")],
        "client_id": "offramp",
        "security_protocol": security.protocol,
        "reconnect_backoff_max_ms": 1000,
    }
    settings |= kafka_python_login(security)
    files = {
        "ssl_cafile": security.ca_file,
        "ssl_certfile": security.certificate_file,
        "ssl_keyfile": security.key_file,
    }
    settings |= {name: str(path) for name, path in files.items() if path is not None}
    if security.key_password is not None:
        settings["ssl_password"] = security.key_password.reveal()
    return settings


def _connect_zookeeper(profile: Profile, timeout_s: float, is_patient: bool = True) -> ZookeeperClient:
    where = f"cluster {profile.name!r}: ZooKeeper {profile.zookeeper_connect}"
    check_login(profile.security.zookeeper)
    servers = str(profile.zookeeper_connect).partition("/")[0].split(",")
    if not is_patient and all(refuses(each, ZOOKEEPER_PORT) for each in servers):
        raise ConnectError(
            f"{where}: no process listens there. Check the ports in zookeeper_connect, and whether the servers run"
        )
    client = ZookeeperClient(profile.zookeeper_connect, **zookeeper_settings(profile))
    is_connected = False
    try:
        client.start(timeout=timeout_s)
        is_there = client.exists("/")  # The first that a server answers after the login, if it is asked for one.
        if client.chroot and not is_there:
            raise ConnectError(f"{where}: there is no chroot {client.chroot}")
        is_connected = True
    except AuthFailedError:
        raise AuthenticationFailed(
            f"{where}: the digest or the SASL login was refused: {zookeeper_remedy(profile.security.zookeeper)}"
        ) from None
    except (KazooException, client.handler.timeout_exception) as error:
        raise ConnectError(
            f"{where}: no server answered within {timeout_s:g} s ({error}){_tls_hint(profile)}"
        ) from None
    finally:
        if not is_connected:
            _stop(client)
    return client


def _tls_hint(profile: Profile) -> str:
    """kazoo tries again after a failed TLS handshake and does not report the error."""
    security = profile.security.zookeeper
    if not security.uses_tls:
        return ""
    return (
        "; check that it is the TLS port, that an authority in ca_file has signed its certificate, and that the "
        "certificate names this host"
        f"{_own_hint(security)}"
    )


def _own_hint(security: TlsSettings) -> str:
    """A server that asks for a certificate closes the connection; kafka-python and kazoo do not report why."""
    if not security.uses_tls or security.certificate_file is not None:
        return ""
    return ". If the server asks for a client certificate, set certificate_file and key_file"


def zookeeper_settings(profile: Profile) -> dict[str, Any]:
    """A profile's ZooKeeper security as kazoo's arguments. Raises as ``client_context``."""
    security = profile.security.zookeeper
    settings: dict[str, Any] = {}
    if security.digest is not None:
        settings["auth_data"] = [("digest", security.digest.reveal())]
    settings |= kazoo_login(security)
    if security.uses_tls:
        client_context(security)
        own_key = security.key_file or security.certificate_file  # Without a key, kazoo would show no certificate.
        files = {"ca": security.ca_file, "certfile": security.certificate_file, "keyfile": own_key}
        # kazoo by itself takes any server that the authority signed for, whatever its name.
        settings |= {"use_ssl": True, "check_hostname": security.check_host_name}
        settings |= {name: str(path) for name, path in files.items() if path is not None}
    if security.key_password is not None:
        settings["keyfile_password"] = security.key_password.reveal()
    return settings


def librdkafka_settings(profile: Profile) -> dict[str, Any]:
    """A profile's brokers and their security as librdkafka's keys. Raises as ``client_context``."""
    security = profile.security.kafka
    if security.uses_tls:
        client_context(security)
    files = {
        "ssl.ca.location": security.ca_file,
        "ssl.certificate.location": security.certificate_file,
        "ssl.key.location": security.key_file,
    }
    settings: dict[str, Any] = {"bootstrap.servers": profile.bootstrap_servers, "security.protocol": security.protocol}
    settings |= {name: str(path) for name, path in files.items() if path is not None}
    if security.key_password is not None:
        settings["ssl.key.password"] = security.key_password.reveal()
    return settings | librdkafka_login(security)


def _check_identity(profile: Profile, metadata: ClusterMetadata, zookeeper: KazooClient | None) -> str:
    actual = metadata.cluster_id or "(none)"
    if profile.cluster_id is not None and profile.cluster_id != actual:
        raise WrongCluster(
            f"cluster {profile.name!r}: expected cluster id {profile.cluster_id}, but {profile.bootstrap_servers} "
            f"answers as {actual}; nothing was read. Compare both ids, or choose another cluster with --profile"
        )
    if zookeeper is not None:
        _check_zookeeper(profile, actual, zookeeper, f"the brokers answer as {actual}")
    return actual


def _check_zookeeper(profile: Profile, cluster_id: str, zookeeper: KazooClient, because: str) -> None:
    (answer,) = fetch_data(zookeeper, ["/cluster/id"])
    if isinstance(answer, KazooException):
        raise AuthenticationFailed(
            f"cluster {profile.name!r}: /cluster/id of ZooKeeper {profile.zookeeper_connect} {refusal(answer)}, so "
            "it is unknown whether it belongs to this cluster. Check security.zookeeper, or grant this login READ"
        )
    data = answer.data.decode() if isinstance(answer, Znode) else ""
    if f'"{cluster_id}"' not in data:
        raise WrongCluster(
            f"cluster {profile.name!r}: {because}, but ZooKeeper {profile.zookeeper_connect} "
            f"holds {data or 'no /cluster/id'}. These are two different clusters, or the chroot is missing. Nothing "
            "more was done. Check zookeeper_connect"
        )


def _stop(client: KazooClient) -> None:
    client.stop()
    client.close()
