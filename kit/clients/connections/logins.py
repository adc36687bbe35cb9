"""The token, or the Kerberos tickets, before any server sees them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kit.clients.connections.check import OK, WARNING, Check, failed
from kit.errors import OfframpError
from kit.profile.security.kerberos import credentials, login_of, ticket_end_s
from kit.profile.security.refusals import described_token
from kit.profile.security.settings import KafkaSecurity, ZookeeperSecurity
from kit.profile.security.tokens import LARGEST_SKEW_S, provider_of

SHORT_TICKET_S = 3600.0
"""A run may last longer than tickets that no process renews."""


def check_token(security: KafkaSecurity) -> Iterator[Check]:
    """Yield a row on the token, and one on the clock where the issuer dated the token just now."""
    try:
        token = provider_of(security).token()
    except OfframpError as error:
        yield failed("token", "token", error)
        return
    sentence = described_token(token)
    yield Check("token", "token", OK, f"{sentence[0].upper()}{sentence[1:]}.")
    issued_at = token.claims.get("iat")
    if security.token_url is None or not isinstance(issued_at, int | float):
        return
    behind_s = time.time() - issued_at
    if abs(behind_s) > LARGEST_SKEW_S:
        sentence = f"The clock of this machine differs from the issuer's by {behind_s:+.0f} s. Correct the clock."
        yield Check("token", "clock", WARNING, sentence)
    else:
        yield Check("token", "clock", OK, f"The clock agrees with the issuer's within {LARGEST_SKEW_S:g} s.")


def check_kerberos(component: str, security: KafkaSecurity | ZookeeperSecurity, service: str) -> Iterator[Check]:
    login = login_of(security, service)
    try:
        found = credentials(login)
        principal, left_s = str(found.name), ticket_end_s(found) - time.time()
    except OfframpError as error:
        yield failed(component, "tickets", error)
        return
    validity = f"Tickets of {principal} from {login.tickets} are valid for {left_s / 60:.0f} min"
    if login.keytab is None and left_s < SHORT_TICKET_S:
        yield Check(
            component, "tickets", WARNING, f"{validity}, and offramp can't renew them. Run kinit, or use a keytab."
        )
    else:
        yield Check(component, "tickets", OK, f"{validity}.")
