"""Ids of the fields inside an object: keys, parameters, packet metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.errors import CompileError
from v1model.p4info.annotations import number

if TYPE_CHECKING:
    from v1model.frontend.ast import Annotation


def field_ids(fields: list[tuple[Annotation, ...]]) -> list[int]:
    """Return one id for each field, given its annotations: that of @id, else the next free one from 1 on."""
    given = [number(annotations, "id") for annotations in fields]
    taken = {id_ for id_ in given if id_ is not None}
    if 0 in taken or len(taken) != len(given) - given.count(None):
        raise CompileError("@id must be above 0 and differ from the other fields'", fields[0][0].span)
    ids: list[int] = []
    following = 1
    for id_ in given:
        if id_ is None:
            while following in taken:
                following += 1
            taken.add(following)
            ids.append(following)
        else:
            following += 1
            ids.append(id_)
    return ids
