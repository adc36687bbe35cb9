"""A member of a Kafka group of any type, as rows have it."""

from __future__ import annotations

from typing import Any

from kit.tables.groups import KAFKA, Member


def kafka_member(
    group_id: str,
    described: Any,
    *,
    pattern: str | None = None,
    error: str | None = None,
    is_embedded: bool | None = False,
    member_type: str | None = None,
) -> Member:
    """``described``: one member of an answer. Requests differ in how they name the id of a static member."""
    return Member(
        group_id=group_id,
        source=KAFKA,
        member_id=described.member_id,
        client_id=described.client_id,
        client_host=described.client_host.removeprefix("/"),
        group_instance_id=getattr(described, "group_instance_id", None) or getattr(described, "instance_id", None),
        pattern=pattern,
        in_migration_ids=None,
        registered_at=None,
        session_id=None,
        error=error,
        is_embedded=is_embedded,
        member_type=member_type,
        member_epoch=getattr(described, "member_epoch", None),
    )
