"""Translation of match fields on the wire (p4.v1.FieldMatch) to `KeyMatch` and back.

There is a class for each match kind. Canonical forms (P4Runtime 1.4, "Match Format"): a don't-care field is
left out, and bits that don't matter are zero. None in the tuples of `KeyMatch` stands for don't-care.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model import ir
from v1model.dataplane import DataPlaneError
from v1model.ir import KeyMatch
from v1model.p4runtime.values import is_plain
from v1model.protos.p4.config.v1 import p4info_pb2
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from v1model.dataplane import Matches
    from v1model.p4runtime.values import Codec, CodecFactory

    RepeatedCompositeContainer = Any  # protobuf gives it no name of its own


class FieldTranslator:
    """Translator of a key field.

    `position` is its place in the table's keys, `wire_kind` the oneof's member.
    """

    wire_kind = ""
    may_be_omitted = True
    needs_priority = False

    def __init__(self, info: p4info_pb2.MatchField, position: int, codec: Codec) -> None:
        self.id: int = info.id
        self.name: str = info.name
        self.position = position
        self.codec = codec
        self.all_ones = (1 << codec.width) - 1

    def decode(self, message: p4runtime_pb2.FieldMatch) -> KeyMatch:
        raise NotImplementedError

    def encode(self, match: KeyMatch, message: p4runtime_pb2.FieldMatch) -> None:
        raise NotImplementedError

    def is_dont_care(self, match: KeyMatch) -> bool:
        """Return whether a match is a don't-care, as entries in the source may have (`_` for lpm is /0)."""
        return False

    def invalid(self, reason: str) -> DataPlaneError:
        return DataPlaneError("INVALID_ARGUMENT", f"match field {self.name}: {reason}")


class ExactField(FieldTranslator):
    wire_kind = "exact"
    may_be_omitted = False

    def decode(self, message: p4runtime_pb2.FieldMatch) -> KeyMatch:
        return KeyMatch(self.codec.decode(message.exact.value))

    def encode(self, match: KeyMatch, message: p4runtime_pb2.FieldMatch) -> None:
        message.exact.value = self.codec.encode(match.value)


class OptionalField(FieldTranslator):
    wire_kind = "optional"
    needs_priority = True

    def decode(self, message: p4runtime_pb2.FieldMatch) -> KeyMatch:
        return KeyMatch(self.codec.decode(message.optional.value))

    def encode(self, match: KeyMatch, message: p4runtime_pb2.FieldMatch) -> None:
        message.optional.value = self.codec.encode(match.value)


class LpmField(FieldTranslator):
    wire_kind = "lpm"

    def decode(self, message: p4runtime_pb2.FieldMatch) -> KeyMatch:
        value, length = self.codec.decode(message.lpm.value), message.lpm.prefix_len
        if not 0 < length <= self.codec.width:
            raise self.invalid(
                f"a prefix of {length} bits, but 1 to {self.codec.width} (or no field) are possible"
            )
        if value & (1 << self.codec.width - length) - 1:
            raise self.invalid(f"bits behind the prefix of {length} must be zero")
        return KeyMatch(value, prefix_length=length)

    def encode(self, match: KeyMatch, message: p4runtime_pb2.FieldMatch) -> None:
        message.lpm.value = self.codec.encode(match.value)
        message.lpm.prefix_len = match.prefix_length or 0

    def is_dont_care(self, match: KeyMatch) -> bool:
        return match.prefix_length == 0


class TernaryField(FieldTranslator):
    wire_kind = "ternary"
    needs_priority = True

    def decode(self, message: p4runtime_pb2.FieldMatch) -> KeyMatch:
        value, mask = self.codec.decode(message.ternary.value), self.codec.decode(message.ternary.mask)
        if not mask:
            raise self.invalid("a mask of zero: leave the field out for don't-care")
        if value & ~mask:
            raise self.invalid("bits outside the mask must be zero")
        return KeyMatch(value, mask=mask)

    def encode(self, match: KeyMatch, message: p4runtime_pb2.FieldMatch) -> None:
        message.ternary.value = self.codec.encode(match.value)
        message.ternary.mask = self.codec.encode(self.all_ones if match.mask is None else match.mask)

    def is_dont_care(self, match: KeyMatch) -> bool:
        return match.mask == 0


class RangeField(FieldTranslator):
    wire_kind = "range"
    needs_priority = True

    def decode(self, message: p4runtime_pb2.FieldMatch) -> KeyMatch:
        low, high = self.codec.decode(message.range.low), self.codec.decode(message.range.high)
        if low > high:
            raise self.invalid(f"low ({low}) is above high ({high})")
        if low == 0 and high == self.all_ones:
            raise self.invalid("the whole range: leave the field out for don't-care")
        return KeyMatch(low, high=high)

    def encode(self, match: KeyMatch, message: p4runtime_pb2.FieldMatch) -> None:
        message.range.low = self.codec.encode(match.value)
        message.range.high = self.codec.encode(match.value if match.high is None else match.high)

    def is_dont_care(self, match: KeyMatch) -> bool:
        return match.value == 0 and match.high == self.all_ones


FIELD_KINDS: dict[int, type[FieldTranslator]] = {
    p4info_pb2.MatchField.EXACT: ExactField,
    p4info_pb2.MatchField.LPM: LpmField,
    p4info_pb2.MatchField.TERNARY: TernaryField,
    p4info_pb2.MatchField.RANGE: RangeField,
    p4info_pb2.MatchField.OPTIONAL: OptionalField,
}


class KeyTranslator:
    """Translator of all match fields of a table's entry or a value set's member; `owner` is for errors."""

    def __init__(
        self,
        owner: str,
        infos: Iterable[p4info_pb2.MatchField],
        keys: Sequence[ir.Key],
        codecs: CodecFactory,
    ) -> None:
        self._owner, self._key_count = owner, len(keys)
        self.fields = list(_fields(owner, infos, keys, codecs))
        self._by_id = {field.id: field for field in self.fields}
        widths = [_width(key) for key in keys]
        self.is_plain = sorted(field.position for field in self.fields) == list(range(len(keys))) and all(
            is_plain(field.codec, widths[field.position]) for field in self.fields
        )
        """Whether no value is translated, and each key occurs once."""
        self._mandatory = [field for field in self.fields if not field.may_be_omitted]

    def decode(self, messages: Iterable[p4runtime_pb2.FieldMatch]) -> Matches:
        """Return a match for each key, None where it is left out."""
        matches: list[KeyMatch | None] = [None] * self._key_count
        for message in messages:
            field = self._by_id.get(message.field_id)
            if field is None:
                reason = f"{self._owner}: no match field has id {message.field_id}"
                raise DataPlaneError("INVALID_ARGUMENT", reason)
            if not message.HasField(field.wire_kind):
                raise field.invalid(f"is {field.wire_kind}, not {message.WhichOneof('field_match_type')}")
            if matches[field.position] is not None:
                raise field.invalid("is given twice")
            matches[field.position] = field.decode(message)
        for field in self._mandatory:
            if matches[field.position] is None:
                raise field.invalid("is exact and must be given")
        return tuple(matches)

    def encode(self, matches: Matches, messages: RepeatedCompositeContainer) -> None:
        """Add a message for each match that is not don't-care."""
        for field in self.fields:
            match = matches[field.position]
            if match is not None and not field.is_dont_care(match):
                field.encode(match, messages.add(field_id=field.id))


def _fields(
    owner: str, infos: Iterable[p4info_pb2.MatchField], keys: Sequence[ir.Key], codecs: CodecFactory
) -> Iterator[FieldTranslator]:
    positions = {key.name: position for position, key in enumerate(keys)}
    for info in infos:
        if info.name not in positions or info.match_type not in FIELD_KINDS:
            reason = f"P4Info's key {info.name} of {owner} is not the program's"
            raise DataPlaneError("INVALID_ARGUMENT", reason)
        codec = codecs.codec(_width(keys[positions[info.name]]), info.type_name.name)
        yield FIELD_KINDS[info.match_type](info, positions[info.name], codec)


def _width(key: ir.Key) -> int:
    return key.expression.type.width if isinstance(key.expression.type, ir.Bits) else 1
