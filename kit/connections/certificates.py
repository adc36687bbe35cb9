"""The certificate files that a profile names: whether they can be used, and when they end."""

from __future__ import annotations

from collections.abc import Iterator

from cryptography import x509

from kit.connections.check import Check, failed
from kit.connections.network import TlsSettings, client_context, ending
from kit.errors import OfframpError, ProfileError


def check_files(section: str, security: TlsSettings) -> Iterator[Check]:
    """Yield a row per certificate; the authority that ends first counts."""
    if security.ca_file is None and security.certificate_file is None:
        return
    try:
        client_context(security)
    except OfframpError as error:
        yield failed(section, "certificates", error)
        return
    for key in ("ca_file", "certificate_file"):
        path = getattr(security, key)
        if path is None:
            continue
        try:
            found = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError) as error:
            yield failed(section, key, ProfileError(f"{path} can't be read as PEM: {error}. Check {key}."))
            continue
        ends_at = min(each.not_valid_after_utc.timestamp() for each in found)
        yield ending(section, key, "The first certificate to end" if len(found) > 1 else "The certificate", ends_at)
