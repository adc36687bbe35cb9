"""A Kerberos realm on 127.0.0.1: a KDC, keytabs, and the logins of Java's servers and clients."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from kit.lab.ports import free_ports

REALM = "OFFRAMP.TEST"
KAFKA, ZOOKEEPER, USER = "kafka/127.0.0.1", "zookeeper/localhost", "offramp"
PEER = "kafka/localhost"
"""The brokers among themselves: Java asks a ticket for the name that 127.0.0.1 has on this machine."""
PROGRAMS = {"krb5kdc": "krb5-kdc", "kadmin.local": "krb5-admin-server", "kinit": "krb5-user"}
"""Program → Debian's package of it."""


def missing() -> str:
    """Return what these tests lack here, in one sentence; empty: nothing."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program, path=path) is None]
    modules = [module for module in ("gssapi", "k5test") if find_spec(module) is None]
    lacks = [*(f"Debian's package {each}" for each in packages), *(f"Python's package {each}" for each in modules)]
    return f"Kerberos is not tried: {', '.join(lacks)} missing; python -m tests.servers.optional_setup" if lacks else ""


class Realm:
    """Up while the block runs. ``environment``: for libkrb5 of this process; ``options``: for JVMs."""

    def __init__(self, folder: Path, users: Sequence[str] = ()) -> None:
        self.folder = folder
        self._principals = (KAFKA, PEER, ZOOKEEPER, USER, *users)

    def __enter__(self) -> Realm:
        from k5test.realm import MITRealm

        address = f"127.0.0.1:{free_ports(1)[0]}"
        names = {"rdns": "false", "dns_canonicalize_hostname": "false", "udp_preference_limit": "1"}
        client = {"libdefaults": names, "realms": {"$realm": {"kdc": address}}}
        ports = {"kdc_ports": None, "kdc_tcp_ports": None, "kdc_listen": address, "kdc_tcp_listen": address}
        self._realm = MITRealm(
            realm=REALM,
            krb5_conf=client,
            kdc_conf={"realms": {"$realm": ports}},
            create_user=False,
            create_host=False,
            get_creds=False,
        )
        for principal in self._principals:
            self._realm.addprinc(principal)
            self._realm.extract_keytab(principal, str(self.keytab(principal)))
        self.jaas.write_text("".join(self._section(*each) for each in _SECTIONS), encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._realm.stop()
        shutil.rmtree(self._realm.tmpdir, ignore_errors=True)

    def stop_kdc(self) -> None:
        self._realm.stop_kdc()

    def start_kdc(self) -> None:
        self._realm.start_kdc()

    def keytab(self, principal: str) -> Path:
        return self.folder / f"{principal.partition('/')[0]}.keytab"

    def tickets(self, cache: Path, life: str = "1h") -> None:
        """Get the user's tickets into a cache."""
        flags = ["-k", "-t", str(self.keytab(USER)), "-c", str(cache), "-l", life]
        self._realm.kinit(USER, flags=flags)

    @property
    def jaas(self) -> Path:
        return self.folder / "jaas.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        names = ("KRB5_CONFIG", "KRB5CCNAME", "KRB5_CLIENT_KTNAME")
        return {name: self._realm.env[name] for name in names}

    @property
    def options(self) -> tuple[str, ...]:
        config = self._realm.env["KRB5_CONFIG"]
        return (f"-Djava.security.krb5.conf={config}", f"-Djava.security.auth.login.config={self.jaas}")

    def _section(self, name: str, principal: str) -> str:
        module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
        return f'{name} {{ {module} keyTab="{self.keytab(principal)}" principal="{principal}@{REALM}"; }};\n'

    def kafka_login(self) -> dict[str, Mapping[str, str]]:
        """The listener takes tickets of this realm: for ``SaslLab``."""
        return {"GSSAPI": {"sasl.jaas.config": self.jaas_config(KAFKA), "sasl.kerberos.service.name": "kafka"}}

    def jaas_config(self, principal: str) -> str:
        """Return the JAAS settings of a listener, and of its client."""
        return self._section("", principal).strip(" {}\n").removesuffix("; };").strip() + ";"


_SECTIONS = (("Server", ZOOKEEPER), ("Client", KAFKA))
"""JAAS: what ZooKeeper's server is, and as whom brokers and old consumers come to it."""
