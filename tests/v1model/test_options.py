"""simple_switch_grpc's command line."""

from pathlib import Path

import pytest

from v1model.backend import Tracing
from v1model.options import UsageError, parse_switch_options
from v1model.p4runtime.address import TlsFiles
from v1model.trace import TraceFilter
from v1model.trace.recorder import Recording


def test_everything_that_a_script_for_bmv2_gives() -> None:
    general = "-i 1@veth1 --interface 2@veth2 --device-id 7 --thrift-port 9090 --log-level off"
    general += " --nanolog ipc:///tmp/bm-log.ipc --log-console"
    target = "--grpc-server-addr 127.0.0.1:50051 --cpu-port 255 --disable-swap --enable-swap"
    options = parse_switch_options([*general.split(), "program.json", "--", *target.split()])
    assert options.ports == {1: "veth1", 2: "veth2"}
    assert (options.device_id, options.program) == (7, Path("program.json"))
    assert (options.address, options.cpu_port) == ("127.0.0.1:50051", 255)
    assert options.log_packets
    assert options.without_effect == ("--log-level", "--nanolog", "--disable-swap", "--enable-swap")
    assert options.thrift_port == 9090


def test_what_to_write_down() -> None:
    arguments = "--no-p4 --pcap out --trace - --trace-json --trace-port 3 --trace-frame 0800"
    recording = parse_switch_options(arguments.split()).recording
    assert recording == Recording("-", True, False, TraceFilter(3, "0800"), Path("out"))
    assert recording.tracing() is Tracing.STEPS
    assert parse_switch_options(["--no-p4", "--pcap"]).recording.pcap == Path()
    assert parse_switch_options(["--no-p4"]).recording.tracing() is Tracing.OFF


def test_defaults_are_those_of_bmv2_but_for_the_address() -> None:
    options = parse_switch_options(["--no-p4"])
    assert (options.address, options.device_id, options.cpu_port) == ("127.0.0.1:9559", 0, None)
    assert (options.program, options.tls) == (None, None)


def test_tls() -> None:
    arguments = "--no-p4 -- --grpc-server-ssl --grpc-server-cert c --grpc-server-key k --grpc-server-cacert a"
    options = parse_switch_options([*arguments.split(), "--grpc-server-with-client-auth"])
    assert options.tls == TlsFiles(Path("c"), Path("k"), Path("a"))
    assert parse_switch_options(arguments.split()).tls == TlsFiles(Path("c"), Path("k"), None)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("", "no program given"),
        ("--no-p4 program.p4", "--no-p4 means no program"),
        ("--no-p4 --use-files 0 --pcap", "in files already"),
        ("--no-p4 --thrift-port 70000", "not in 0 to 65535"),
        ("--no-p4 -i 1", "expected PORT@IF"),
        ("--no-p4 -i x@veth", "expected PORT@IF"),
        ("--no-p4 -i 511@veth", "from 0 to 510"),
        ("--no-p4 -i 1@a -i 1@b", "port 1 is already a"),
        ("--no-p4 -i 1@a -i 2@a", "already another port's"),
        ("--no-p4 -i 255@a -- --cpu-port 255", "is the CPU port"),
        ("--no-p4 -- --cpu-port 0", "not in 1 to 510"),
        ("--no-p4 -- --drop-port 12", "drops to port 511"),
        ("--no-p4 -- --grpc-server-addr 9559", "expected HOST:PORT"),
        ("--no-p4 -- --grpc-server-addr host:70000", "expected HOST:PORT"),
        ("--no-p4 -- --grpc-server-ssl", "needs --grpc-server-cert"),
        ("--no-p4 -- --dp-grpc-server-addr x:1", "use the library form"),
        ("--no-p4 --trace-port 1", "need --trace FILE"),
        ("--no-p4 --trace x --trace-frame 0", "even number of hex digits"),
        ("--no-p4 --nonsense", "unrecognized arguments: --nonsense"),
        ("--no-p4 --device-id x", "'x' is not a number"),
    ],
)
def test_command_lines_that_make_no_sense(arguments: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_switch_options(arguments.split())


def test_packets_in_files() -> None:
    options = parse_switch_options(["-i", "0@pcaps/a", "--use-files", "2", "program.p4"])
    assert (options.files_after_s, options.ports) == (2, {0: "pcaps/a"})


def test_p4runtime_may_listen_elsewhere_where_thrift_is_what_was_asked_for() -> None:
    """So that several switches started as simple_switch do not want the same address."""
    assert parse_switch_options(["--no-p4", "--thrift-port", "9091"]).may_listen_elsewhere
    with_address = "--no-p4 --thrift-port 9091 -- --grpc-server-addr 127.0.0.1:9559"
    assert not parse_switch_options(with_address.split()).may_listen_elsewhere
    assert not parse_switch_options(["--no-p4"]).may_listen_elsewhere


@pytest.mark.parametrize(
    "arguments", [["--priority-queues", "4", "--no-p4"], ["--no-p4", "--", "--priority-queues", "4"]]
)
def test_priority_queues(arguments: list[str]) -> None:
    assert parse_switch_options(arguments).priority_queues == 4


def test_more_queues_than_priorities() -> None:
    with pytest.raises(UsageError, match="1 to 8"):
        parse_switch_options(["--no-p4", "--", "--priority-queues", "9"])
