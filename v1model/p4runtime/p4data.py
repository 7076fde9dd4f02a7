"""Translation of P4Data (digests, registers) to flat tuples of ints and back, by the P4Info's type.

A struct's or tuple's members follow each other in the flat tuple; a header puts its validity first. Values of
enums without an underlying type and of `error` are indices in the tuple, names on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError
from v1model.p4runtime.values import Codec, SignedCodec, check_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from v1model.p4runtime.values import CodecFactory
    from v1model.protos.p4.config.v1 import p4types_pb2
    from v1model.protos.p4.v1 import p4data_pb2

    Encoder = Callable[[Iterator[int], p4data_pb2.P4Data], None]
    Decoder = Callable[[p4data_pb2.P4Data], Iterator[int]]


class DataTranslator:
    """Translator for one P4DataTypeSpec."""

    def __init__(
        self, spec: p4types_pb2.P4DataTypeSpec, type_info: p4types_pb2.P4TypeInfo, codecs: CodecFactory
    ) -> None:
        try:
            self._encode, self._decode = _Builder(type_info, codecs).build(spec)
        except RecursionError:
            message = "the P4Info has types of data inside one another too deeply"
            raise DataPlaneError("INVALID_ARGUMENT", message) from None

    def encode(self, values: Sequence[int], message: p4data_pb2.P4Data) -> None:
        """Write values into `message`."""
        self._encode(iter(values), message)

    def decode(self, message: p4data_pb2.P4Data) -> tuple[int, ...]:
        return tuple(self._decode(message))


class _Builder:
    def __init__(self, type_info: p4types_pb2.P4TypeInfo, codecs: CodecFactory) -> None:
        self._types = type_info
        self._codecs = codecs

    def build(self, spec: p4types_pb2.P4DataTypeSpec) -> tuple[Encoder, Decoder]:
        self._codecs.count_parts(1)
        kind = spec.WhichOneof("type_spec")
        builders: dict[str, Callable[[], tuple[Encoder, Decoder]]] = {
            "bitstring": lambda: _bitstring(self._bitstring_codec(spec.bitstring)),
            "bool": _boolean,
            "struct": lambda: self._struct(
                [m.type_spec for m in self._types.structs[spec.struct.name].members]
            ),
            "tuple": lambda: self._struct(spec.tuple.members, "tuple"),
            "header": lambda: self._header(spec.header.name),
            "enum": lambda: self._enum(spec.enum.name),
            "error": self._error,
            "serializable_enum": lambda: self._serializable(spec.serializable_enum.name),
            "new_type": lambda: self._new_type(spec.new_type.name),
        }
        return builders[kind]() if kind in builders else _refused(str(kind))

    def _bitstring_codec(self, spec: p4types_pb2.P4BitstringLikeTypeSpec) -> Codec:
        if spec.HasField("int"):
            check_width(spec.int.bitwidth, least=1)
            return SignedCodec(spec.int.bitwidth)
        return self._codecs.codec(spec.bit.bitwidth, "")

    def _enum(self, name: str) -> tuple[Encoder, Decoder]:
        members = self._types.enums[name].members
        self._codecs.count_parts(len(members))
        return _named("enum", [member.name for member in members])

    def _error(self) -> tuple[Encoder, Decoder]:
        self._codecs.count_parts(len(self._types.error.members))
        return _named("error", list(self._types.error.members))

    def _serializable(self, name: str) -> tuple[Encoder, Decoder]:
        width = self._types.serializable_enums[name].underlying_type.bitwidth
        return _bitstring(self._codecs.codec(width, ""), "enum_value")

    def _new_type(self, name: str) -> tuple[Encoder, Decoder]:
        new_type = self._types.new_types[name]
        if new_type.HasField("original_type"):
            return self.build(new_type.original_type)
        return _bitstring(self._codecs.codec(new_type.translated_type.sdn_bitwidth, name))

    def _struct(
        self, specs: Sequence[p4types_pb2.P4DataTypeSpec], member: str = "struct"
    ) -> tuple[Encoder, Decoder]:
        parts = [self.build(spec) for spec in specs]

        def encode(values: Iterator[int], message: p4data_pb2.P4Data) -> None:
            struct = getattr(message, member)
            for encode_part, _ in parts:
                encode_part(values, struct.members.add())

        def decode(message: p4data_pb2.P4Data) -> Iterator[int]:
            members = getattr(message, member).members
            if len(members) != len(parts):
                raise _mismatch(f"a {member} of {len(parts)} members")
            for (_, decode_part), part in zip(parts, members, strict=True):
                yield from decode_part(part)

        return encode, decode

    def _header(self, name: str) -> tuple[Encoder, Decoder]:
        members = self._types.headers[name].members
        self._codecs.count_parts(len(members))
        codecs = [self._bitstring_codec(member.type_spec) for member in members]

        def encode(values: Iterator[int], message: p4data_pb2.P4Data) -> None:
            message.header.is_valid = bool(next(values))
            fields = [codec.encode(next(values)) for codec in codecs]
            if message.header.is_valid:
                message.header.bitstrings.extend(fields)

        def decode(message: p4data_pb2.P4Data) -> Iterator[int]:
            header = message.header
            if len(header.bitstrings) != (len(codecs) if header.is_valid else 0):
                raise _mismatch(f"header {name}")
            yield int(header.is_valid)
            if header.is_valid:
                yield from (codec.decode(data) for codec, data in zip(codecs, header.bitstrings, strict=True))
            else:
                yield from (0 for _ in codecs)

        return encode, decode


def _bitstring(codec: Codec, member: str = "bitstring") -> tuple[Encoder, Decoder]:
    def encode(values: Iterator[int], message: p4data_pb2.P4Data) -> None:
        setattr(message, member, codec.encode(next(values)))

    def decode(message: p4data_pb2.P4Data) -> Iterator[int]:
        if not message.HasField(member):
            raise _mismatch(member)
        yield codec.decode(getattr(message, member))

    return encode, decode


def _boolean() -> tuple[Encoder, Decoder]:
    def encode(values: Iterator[int], message: p4data_pb2.P4Data) -> None:
        message.bool = bool(next(values))

    def decode(message: p4data_pb2.P4Data) -> Iterator[int]:
        if not message.HasField("bool"):
            raise _mismatch("bool")
        yield int(message.bool)

    return encode, decode


def _named(member: str, names: list[str]) -> tuple[Encoder, Decoder]:
    def encode(values: Iterator[int], message: p4data_pb2.P4Data) -> None:
        index = next(values)
        setattr(message, member, names[index] if index < len(names) else "")

    def decode(message: p4data_pb2.P4Data) -> Iterator[int]:
        name = getattr(message, member)
        if name not in names:
            raise _mismatch(f"{member}: one of {', '.join(names)}")
        yield names.index(name)

    return encode, decode


def _refused(kind: str) -> tuple[Encoder, Decoder]:
    def refuse(*_: object) -> Iterator[int]:
        raise DataPlaneError(
            "UNIMPLEMENTED", f"values of type {kind} can't be read or written over P4Runtime"
        )

    return refuse, refuse  # type: ignore[return-value]  # it never returns


def _mismatch(expected: str) -> DataPlaneError:
    return DataPlaneError("INVALID_ARGUMENT", f"the data is not what the P4Info says: {expected}")
