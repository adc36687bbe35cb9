"""A lab whose brokers have other settings than the lab gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit.lab import Lab
from kit.lab.servers.cluster import Servers


class TunedLab(Lab):
    """``settings`` are lines of each broker's ``server.properties``, from its first start on; ``shape`` is Lab's."""

    def __init__(self, settings: Mapping[str, str], **shape: Any) -> None:
        super().__init__(**shape)
        self._settings = settings

    def _servers(self) -> Servers:
        servers = super()._servers()
        for broker in servers.brokers:
            broker.added |= self._settings
        return servers
