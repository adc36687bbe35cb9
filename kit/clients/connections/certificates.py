"""The certificate files that a profile names: whether they can be used, and when they end."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kit.clients.connections.check import Check, failed
from kit.clients.connections.network import ending
from kit.errors import OfframpError
from kit.profile.security.settings import section_of
from kit.profile.security.tls_files import TlsSettings, client_context, read_named, validities


def check_files(security: TlsSettings) -> Iterator[Check]:
    """Yield a row per file. The first of several certificates to end counts; an authority that ended is left out."""
    section = section_of(security)
    if security.ca_file is None and security.certificate_file is None:
        return
    try:
        client_context(security)
        for key in ("ca_file", "certificate_file"):
            path = getattr(security, key)
            if path is not None:
                found = [end for _, end in validities(read_named(f"{section}.{key}", path)) if end > time.time()]
                what = "The certificate that expires first" if len(found) > 1 else "The certificate"
                yield ending(section, key, what, min(found, default=None))
    except OfframpError as error:
        yield failed(section, "certificates", error)
