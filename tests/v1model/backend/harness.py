"""Small IR programs built by hand, so that the back end is tested without the front end."""

from __future__ import annotations

from v1model import ir

BIT = ir.Bits
STANDARD = ir.Struct(
    "standard_metadata_t",
    (
        ("ingress_port", BIT(9)),
        ("egress_spec", BIT(9)),
        ("egress_port", BIT(9)),
        ("instance_type", BIT(32)),
        ("packet_length", BIT(32)),
        ("enq_timestamp", BIT(32)),
        ("enq_qdepth", BIT(19)),
        ("deq_timedelta", BIT(32)),
        ("deq_qdepth", BIT(19)),
        ("ingress_global_timestamp", BIT(48)),
        ("egress_global_timestamp", BIT(48)),
        ("mcast_grp", BIT(16)),
        ("egress_rid", BIT(16)),
        ("checksum_error", BIT(1)),
        ("parser_error", BIT(32)),
        ("priority", BIT(3)),
    ),
)
ERRORS = (
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
)
ALGORITHMS = ("crc32", "crc32_custom", "crc16", "crc16_custom", "random", "identity", "csum16", "xor16")
NO_FIELDS = ir.Struct("metadata_t", ())


def const(value: int, width: int) -> ir.Const:
    return ir.Const(value, BIT(width))


def member(base: ir.Expr, name: str) -> ir.Member:
    assert isinstance(base.type, ir.Struct | ir.Header | ir.Union)
    fields = dict(base.type.fields)
    return ir.Member(base, name, fields[name])


class Build:
    """Collects a program's parts; `program()` puts them together. Without a parser of its own it
    extracts every header in order, without a deparser it emits all."""

    def __init__(self, headers: tuple[tuple[str, ir.Type], ...], metadata: ir.Struct = NO_FIELDS) -> None:
        self.headers_type, self.metadata_type = ir.Struct("headers_t", headers), metadata
        self.headers = ir.Var("headers", self.headers_type)
        self.metadata = ir.Var("metadata", metadata)
        self.standard = ir.Var("standard_metadata", STANDARD)
        self.ingress: list[ir.Stmt] = []
        self.egress: list[ir.Stmt] = []
        self.verify: list[ir.Stmt] = []
        self.compute: list[ir.Stmt] = []
        self.locals: list[ir.Var] = []
        self.states: tuple[ir.State, ...] = ()
        self.tables: list[ir.Table] = []
        self.actions: list[ir.Action] = []
        self.externs: list[ir.ExternInstance] = []
        self.digests: list[ir.Digest] = []

    def header(self, name: str) -> ir.Member:
        return member(self.headers, name)

    def field(self, header: str, name: str) -> ir.Member:
        return member(self.header(header), name)

    def meta(self, name: str) -> ir.Member:
        return member(self.metadata, name)

    def std(self, name: str) -> ir.Member:
        return member(self.standard, name)

    def program(self) -> ir.Program:
        states = self.states or (self._extract_all(),)
        emits = tuple(ir.Emit(member(self.headers, name)) for name, _ in self.headers_type.fields)

        def control(name: str, body: list[ir.Stmt] | tuple[ir.Stmt, ...]) -> ir.Control:
            return ir.Control(name, tuple(self.locals) if name == "ingress" else (), tuple(body))

        return ir.Program(
            name="test.p4",
            headers=self.headers_type,
            metadata=self.metadata_type,
            standard_metadata=STANDARD,
            parser=ir.Parser("parser", (), "start", states),
            verify_checksum=control("verify", self.verify),
            ingress=control("ingress", self.ingress),
            egress=control("egress", self.egress),
            compute_checksum=control("compute", self.compute),
            deparser=control("deparser", emits),
            tables=tuple(self.tables),
            actions=tuple(self.actions),
            externs=tuple(self.externs),
            digests=tuple(self.digests),
            translations=(),
            controller_headers=(),
            errors=ERRORS,
            enums={"HashAlgorithm": ALGORITHMS},
        )

    def _extract_all(self) -> ir.State:
        body = []
        for name, kind in self.headers_type.fields:
            assert isinstance(kind, ir.Header)
            body.append(ir.Extract(member(self.headers, name), kind))
        return ir.State("start", tuple(body), goto("accept"))


def goto(target: str) -> ir.Transition:
    return ir.Transition((), (((), target),))


def header(name: str, **widths: int) -> ir.Header:
    return ir.Header(name, tuple((field, BIT(width)) for field, width in widths.items()))
