"""The types and shapes of the tensors in LMCache's objects, which LMCache's names of them do not say.

Engines that run one model in bfloat16 and in float16 name their chunks alike, and so do engines that split it
over two ranks by heads and by layers: the objects are of one size. Types and shapes tell them apart. When
LMCache stores or loads, they are those of its memory; when it looks up, they are those that it announces, or
bytes where it serializes its chunks.

Plain bytes say nothing: they are KV in any 8-bit format, or chunks that LMCache serialized in one of several
ways. They have a name only where the user says what they are.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmcache.v1.distributed.api import MemoryLayoutDesc, ObjectKey
    from lmcache.v1.memory_management import MemoryObj

BYTES: Final = "torch.uint8"
"""The form of chunks that LMCache serializes, and of KV that an engine quantized to 8 bits."""
USUAL: Final = (BYTES, "torch.bfloat16", "torch.float16", "torch.float32", "torch.float8_e4m3fn")
MAX_GROUPS: Final = 1024
"""Number of models' groups of layers whose forms are remembered."""
MAX_FORMS: Final = 8
"""Most forms of one group; the one that was used first is forgotten."""


def form_of(types: Sequence[Any], shapes: Sequence[Sequence[int]]) -> str:
    """Return the form of an object with tensors of these types and shapes.

    A row of bytes or numbers has no shape but its length, which differs where LMCache compresses.
    """
    parts = (
        f"{one} {'x'.join(map(str, shape))}" if len(shape) > 1 else str(one)
        for one, shape in zip(types, shapes, strict=True)
    )
    return ",".join(parts)


def form_of_object(content: MemoryObj) -> str:
    """Return the form of an object in LMCache's memory."""
    described = content.metadata
    types, shapes = getattr(described, "dtypes", None), getattr(described, "shapes", None)
    if types and shapes:
        return form_of(types, shapes)
    return form_of([content.get_dtype()], [content.get_shape()])


class Forms:
    """Forms of objects that this process has seen. May be used from several threads."""

    def __init__(self, byte_format: str | None = None) -> None:
        """Make it; `byte_format` is what plain bytes are, or None if that is not known."""
        self._byte_format = byte_format
        self._seen: OrderedDict[tuple[str, int], OrderedDict[str, None]] = OrderedDict()
        self._changing = threading.Lock()

    def see(self, key: ObjectKey, form: str) -> str:
        """Take note that an object of this name has this form, and return it."""
        with self._changing:
            group = key.model_name, key.object_group_id
            forms = self._seen.setdefault(group, OrderedDict())
            self._seen.move_to_end(group)
            forms[form] = None
            forms.move_to_end(form)
            for bounded, most in ((forms, MAX_FORMS), (self._seen, MAX_GROUPS)):
                if len(bounded) > most:
                    bounded.popitem(last=False)
        return form

    def name(self, form: str) -> str | None:
        """Return a form's name for keys; None if it does not say what the numbers are."""
        if BYTES not in (part.partition(" ")[0] for part in form.split(",")):
            return form
        return None if self._byte_format is None else f"{form} of {self._byte_format}"

    def seen(self, key: ObjectKey) -> list[str]:
        """Return the forms that objects of this model's group had; the usual ones if none was seen."""
        with self._changing:
            return list(self._seen.get((key.model_name, key.object_group_id), USUAL))

    def possible(self, key: ObjectKey, announced: MemoryLayoutDesc | None) -> list[str]:
        """Return the forms that an object which LMCache looks for may have."""
        seen = self.seen(key)
        if announced is None or not announced.dtypes:
            return seen
        form = form_of(announced.dtypes, announced.shapes)
        return [form, *(one for one in seen if one == BYTES != form)]
