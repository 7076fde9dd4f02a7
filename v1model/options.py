"""simple_switch_grpc's command line, as the embedded switch takes it.

Options that the embedded switch can't honour are refused with an alternative. Options without an effect on it
(logging details) are accepted, so that scripts for BMv2 work unchanged; a message at the start names them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path

from v1model import without_effect
from v1model.binding.queues import PRIORITIES
from v1model.p4runtime.address import TlsFiles
from v1model.trace.events import TraceFilter
from v1model.trace.recorder import Recording
from v1model.version import Version

# simple_switch_grpc listens on 0.0.0.0:9559. Who reaches P4Runtime may do everything to the switch.
DEFAULT_ADDRESS = "127.0.0.1:9559"
MAX_PORT = 510  # ports are bit<9>, and 511 is where dropped packets go
DROP_PORT = 511
MAX_TCP_PORT = 65535

DESCRIPTION = """\
The embedded v1model switch: forwards packets between interfaces and serves P4Runtime, with the
command line of simple_switch_grpc.

  weir-switch --no-p4 -i 1@veth1 -i 2@veth2 -- --grpc-server-addr 127.0.0.1:9559 --cpu-port 510
  weir-switch -i 1@veth1 -i 2@veth2 program.p4
"""

TARGET_DESCRIPTION = f"""\
options behind `--`:
  --grpc-server-addr ADDR       HOST:PORT or unix:PATH of the P4Runtime server (default {DEFAULT_ADDRESS});
                                whoever reaches it may do everything to the switch
  --cpu-port N                  port of packet-in and packet-out (default: none)
  --priority-queues N           N queues a port by standard_metadata.priority (default: 8, once weir-cli
                                limits one)
  --grpc-server-ssl             TLS, with --grpc-server-cert FILE and --grpc-server-key FILE
  --grpc-server-cacert FILE --grpc-server-with-client-auth
                                accept only clients with a certificate signed by this authority
"""


class UsageError(Exception):
    """A command line is wrong."""


@dataclass(frozen=True)
class SwitchOptions:
    """Options of the command line. With `program` None the switch waits for a pipeline over P4Runtime."""

    ports: dict[int, str]
    program: Path | None
    device_id: int
    address: str
    cpu_port: int | None
    tls: TlsFiles | None
    log_packets: bool
    log_json: bool = False
    externs: Path | None = None
    recording: Recording = field(default_factory=Recording)
    without_effect: tuple[str, ...] = ()
    thrift_port: int | None = None
    may_listen_elsewhere: bool = False  # at another port than `address` if that is in use
    files_after_s: float | None = None  # packets are in files, which are read after so many seconds
    priority_queues: int = 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]  # argparse would exit here
        raise UsageError(message)


def parse_switch_options(arguments: list[str]) -> SwitchOptions:
    """Parse the command line; raises UsageError. Exits after --help and --version, as argparse does."""
    general, target = arguments, []
    if "--" in arguments:
        split = arguments.index("--")
        general, target = arguments[:split], arguments[split + 1 :]
    options = _general_parser().parse_args(general)
    target_options = _target_parser().parse_args(target)
    _refuse(options, _REFUSED)
    _refuse(target_options, _REFUSED_TARGET)
    if options.program and options.no_p4:
        raise UsageError("--no-p4 means no program, but one is given")
    if not options.program and not options.no_p4:
        raise UsageError("no program given: name a P4 program, or start without one with --no-p4")
    if options.use_files is not None and options.pcap:
        raise UsageError("--pcap with --use-files: packets are in files already")
    if target_options.drop_port not in (None, DROP_PORT):
        raise UsageError(
            f"--drop-port: the embedded switch drops to port {DROP_PORT}, as v1model does by default"
        )
    return SwitchOptions(
        ports=_ports(options.interface, target_options.cpu_port),
        program=options.program,
        device_id=options.device_id,
        address=_address(target_options.grpc_server_addr or DEFAULT_ADDRESS),
        cpu_port=target_options.cpu_port,
        tls=_tls(target_options),
        log_packets=options.log_console,
        log_json=options.log_json,
        externs=options.externs,
        recording=_recording(options),
        thrift_port=options.thrift_port,
        may_listen_elsewhere=options.thrift_port is not None and target_options.grpc_server_addr is None,
        files_after_s=options.use_files,
        priority_queues=target_options.priority_queues or options.priority_queues or 0,
        without_effect=tuple(dict.fromkeys([*options.without_effect, *target_options.without_effect])),
    )


def _general_parser() -> _Parser:
    parser = _Parser(
        prog="weir-switch",
        description=DESCRIPTION,
        epilog=TARGET_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "program", nargs="?", type=Path, help="a P4_16 program, or the device config made from one"
    )
    parser.add_argument(
        "-i",
        "--interface",
        action="append",
        default=[],
        metavar="PORT@IF",
        help="attach port number PORT to a network interface; once for each port",
    )
    parser.add_argument("--device-id", type=_natural, default=0, metavar="N", help="P4Runtime's (default: 0)")
    parser.add_argument(
        "--no-p4", action="store_true", help="start without a program: a controller will set it"
    )
    parser.add_argument(
        "--log-console", action="store_true", help="print log_msg() of the program and errors"
    )
    parser.add_argument(
        "--use-files",
        type=_natural,
        metavar="S",
        help="after S seconds, take packets from IF_in.pcap and send into IF_out.pcap; needs no root",
    )
    parser.add_argument(
        "--thrift-port",
        type=_tcp_port,
        metavar="N",
        help="serve BMv2's Thrift calls at 127.0.0.1:N; whoever reaches it may do everything to the switch",
    )
    parser.add_argument("--log-json", action="store_true", help="log JSON lines")
    parser.add_argument("--version", "-v", action=Version, const="P4Runtime 1.4.0")
    _add_recording(parser)
    parser.add_argument("--externs", type=Path, metavar="FILE.c", help="C of externs that are not v1model's")
    parser.add_argument("--priority-queues", type=_queues, help=argparse.SUPPRESS)
    without_effect.accept(parser, _WITHOUT_EFFECT)
    for option in _REFUSED:
        parser.add_argument(option, nargs="?", const="", help=argparse.SUPPRESS)
    return parser


def _target_parser() -> _Parser:
    parser = _Parser(prog="weir-switch --", add_help=False, allow_abbrev=False)
    parser.add_argument("--grpc-server-addr")
    parser.add_argument("--cpu-port", type=_port)
    parser.add_argument("--drop-port", type=_natural)
    parser.add_argument("--priority-queues", type=_queues)
    parser.add_argument("--grpc-server-ssl", action="store_true")
    parser.add_argument("--grpc-server-with-client-auth", action="store_true")
    for option in ("--grpc-server-cacert", "--grpc-server-cert", "--grpc-server-key"):
        parser.add_argument(option, type=Path)
    without_effect.accept(parser, _TARGET_WITHOUT_EFFECT)
    for option in _REFUSED_TARGET:
        parser.add_argument(option)
    return parser


def _add_recording(parser: _Parser) -> None:
    """Add options of traces and captures. Programs are compiled for these only if the options are given."""
    group = parser.add_argument_group("what packets do")
    group.add_argument(
        "--pcap",
        nargs="?",
        const=Path(),
        type=Path,
        metavar="DIR",
        help="write every port's packets to DIR/INTERFACE_in.pcap and INTERFACE_out.pcap (default: here)",
    )
    group.add_argument("--trace", metavar="FILE", help="write each packet's steps; - for standard error")
    group.add_argument("--trace-json", action="store_true", help="as JSON lines")
    group.add_argument("--trace-assignments", action="store_true", help="with what is assigned to fields")
    group.add_argument("--trace-port", type=_natural, metavar="N", help="only of packets into this port")
    group.add_argument(
        "--trace-frame", default="", metavar="HEX", help="only of frames that begin so; * for any digit"
    )


def _recording(options: argparse.Namespace) -> Recording:
    filters = options.trace_port is not None or options.trace_frame
    if (
        (options.trace_json or options.trace_assignments or filters)
        and not options.trace
        and not options.pcap
    ):
        raise UsageError("--trace-... options need --trace FILE")
    try:
        wanted = TraceFilter(options.trace_port, options.trace_frame)
    except ValueError as error:
        raise UsageError(f"--trace-frame: {error}") from error
    return Recording(options.trace or "", options.trace_json, options.trace_assignments, wanted, options.pcap)


_WITHOUT_EFFECT: dict[str, int | None] = {
    "--log-level": None,
    "-L": None,
    "--log-file-max-size": None,
    "--log-file-max-files": None,
    "--notifications-addr": None,
    "--dump-packet-data": None,
    "--max-port-count": None,
    "--log-file": None,
    "--nanolog": None,
    "--log-flush": 0,
}
INSTEAD = dict.fromkeys(
    ("--nanolog", "--log-file"),
    "--trace FILE writes down what packets do, and the rest goes to standard error",
)
_TARGET_WITHOUT_EFFECT: dict[str, int | None] = {
    "--disable-swap": 0,
    "--enable-swap": 0,
    "--max-mc-groups": None,
    "--max-l1-entries": None,
    "--max-l2-entries": None,
}
_REFUSED = {
    "--packet-in": "use the library form (v1model.switch)",
    "--debugger": "there is no debugger; use log_msg() with --log-console",
    "--debugger-addr": "there is no debugger; use log_msg() with --log-console",
    "--restore-state": "let the controller write the state",
    "--json-version": "the embedded switch does not read BMv2's JSON",
    "--load-modules": "extern modules of BMv2 can't be loaded",
}
_REFUSED_TARGET = {
    "--dp-grpc-server-addr": "use the library form (v1model.switch) for packets without interfaces",
    "--load-modules": "extern modules of BMv2 can't be loaded",
}


def _refuse(options: argparse.Namespace, refused: dict[str, str]) -> None:
    for option, instead in refused.items():
        if getattr(options, option.strip("-").replace("-", "_")) is not None:
            raise UsageError(f"{option} is not supported by the embedded switch: {instead}")


def _ports(pairs: list[str], cpu_port: int | None) -> dict[int, str]:
    ports: dict[int, str] = {}
    for pair in pairs:
        number, at, interface = pair.partition("@")
        if not at or not interface or not number.isdigit() or int(number) > MAX_PORT:
            raise UsageError(
                f"-i {pair}: expected PORT@IF with a port from 0 to {MAX_PORT}, for example 1@veth1"
            )
        port = int(number)
        if port in ports:
            raise UsageError(f"-i {pair}: port {port} is already {ports[port]}")
        if port == cpu_port:
            raise UsageError(f"-i {pair}: port {port} is the CPU port, which has no interface")
        if interface in ports.values():
            raise UsageError(f"-i {pair}: {interface} is already another port's")
        ports[port] = interface
    return ports


def _address(text: str) -> str:
    if text.startswith("unix:"):
        return text
    host, colon, port = text.rpartition(":")
    if not host or not colon or not port.isdigit() or int(port) > MAX_TCP_PORT:
        raise UsageError(f"--grpc-server-addr {text}: expected HOST:PORT, for example 127.0.0.1:9559")
    return text


def _tls(options: argparse.Namespace) -> TlsFiles | None:
    if not options.grpc_server_ssl:
        return None
    if not options.grpc_server_cert or not options.grpc_server_key:
        raise UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    if options.grpc_server_with_client_auth and not options.grpc_server_cacert:
        raise UsageError("--grpc-server-with-client-auth needs --grpc-server-cacert")
    client_ca = options.grpc_server_cacert if options.grpc_server_with_client_auth else None
    return TlsFiles(options.grpc_server_cert, options.grpc_server_key, client_ca)


def _natural(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def _tcp_port(text: str) -> int:
    port = _natural(text)
    if port > MAX_TCP_PORT:
        raise argparse.ArgumentTypeError(f"port {port} is not in 0 to {MAX_TCP_PORT}")
    return port


def _queues(text: str) -> int:
    queues = _natural(text)
    if not 1 <= queues <= PRIORITIES:
        raise argparse.ArgumentTypeError(f"there can be 1 to {PRIORITIES} queues a port")
    return queues


def _port(text: str) -> int:
    port = _natural(text)
    if not 0 < port <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"port {port} is not in 1 to {MAX_PORT}")
    return port
