"""The switch as a process (`weir-switch`, `python -m v1model switch`): ports, P4Runtime, signals."""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from v1model.backend import building
from v1model.backend.extern_source import ExternSource
from v1model.dataplane import DataPlaneError
from v1model.drop_log import DropLog
from v1model.errors import CompileError
from v1model.frontend import render, render_one
from v1model.frontend.preprocess import preprocess
from v1model.options import INSTEAD, SwitchOptions, UsageError, parse_switch_options
from v1model.p4info import p4info
from v1model.p4runtime.address import ServerError, is_local
from v1model.p4runtime.device_config import DeviceConfig
from v1model.p4runtime.engine import EmbeddedEngine
from v1model.packet_files import PacketFiles
from v1model.precedence import step_back
from v1model.protos.p4.v1 import p4runtime_pb2
from v1model.sandbox import Source, sandboxed_compile
from v1model.thrift.dispatcher import Dispatcher
from v1model.thrift.process import SwitchUnderP4Runtime
from v1model.thrift.services import Services

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from v1model.p4runtime.server import P4RuntimeServer
    from v1model.thrift.server import ThriftServer

OK, FAILURE, USAGE = 0, 1, 2
LOG_DROPS_EVERY_S = 1.0
END_S = 1.2  # from a signal to the end of the process at the latest

# Reads and writes make protobuf messages by the thousand, and each collection walks them in vain. With
# Python's own thresholds (700, 10, 10) that takes half of the time of a large read.
GC_THRESHOLDS = (100_000, 20, 20)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the switch; returns 0 after SIGTERM or SIGINT, 1 if it can't run, 2 for a wrong command line."""
    try:
        options = parse_switch_options(list(sys.argv[1:] if arguments is None else arguments))
    except UsageError as error:
        return _fail(f"{error} (--help lists the options)", USAGE)
    faulthandler.enable()  # shows where the compiled program crashed
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines() if options.log_json else logging.Formatter("weir-switch: %(message)s"))
    logging.basicConfig(level=logging.INFO if options.log_packets else logging.WARNING, handlers=[handler])
    for option in options.without_effect:
        instead = f": {INSTEAD[option]}" if option in INSTEAD else ""
        logging.warning("%s makes no difference to the embedded switch%s", option, instead)
    if not is_local(options.address) and (options.tls is None or options.tls.client_ca is None):
        logging.warning(
            "whoever reaches %s may do everything to this switch: clients need no certificate "
            "(--grpc-server-ssl with --grpc-server-with-client-auth, or an address of loopback)",
            options.address,
        )
    try:
        _run(options)
    except (ServerError, CompileError, DataPlaneError, OSError) as error:
        return _fail(render(error) if isinstance(error, CompileError) else str(error), FAILURE)
    return OK


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {"time": round(record.created, 3), "level": record.levelname.lower(), "logger": record.name}
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps({**told, "message": record.getMessage()})


def _run(options: SwitchOptions) -> None:
    """Serve until a signal ends it."""
    # gRPC reads this on import. ServerError says better what is wrong with an address.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from v1model.p4runtime.server import allow_connections

    allow_connections()
    stopped = threading.Event()

    def stop(*_: object) -> None:
        stopped.set()
        building.end_compilers()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    threading.Thread(target=_end_in_time, args=(stopped,), name="end", daemon=True).start()
    gc.set_threshold(*GC_THRESHOLDS)
    step_back()
    externs = ExternSource.read(options.externs) if options.externs else None
    files = _packet_files(options) if options.files_after_s is not None else None
    engine = EmbeddedEngine(
        options.ports,
        options.cpu_port,
        externs,
        options.recording,
        options.priority_queues,
        in_files=files is not None,
    )
    server = _p4runtime_server(options, engine)
    process = SwitchUnderP4Runtime(server.service.device, engine, externs, server.address)
    dispatcher = Dispatcher(Services(process.switch, process))
    server.serve_own_calls(_OwnCalls(engine, dispatcher))
    thrift = None
    try:
        if options.thrift_port is not None:
            thrift = _listen(options.thrift_port, process, dispatcher)
        if options.program:
            config = load_config(options.program, externs)
            server.service.device.set_config(
                p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, config
            )
        server.start()
        print(f"listening on {server.address}", flush=True)
        if thrift is not None:
            thrift.start()
            print(f"Thrift on 127.0.0.1:{thrift.port}", flush=True)
        if files is not None:
            arguments = (lambda: engine.connected, stopped, options.files_after_s)
            threading.Thread(target=files.run, args=arguments, name="files", daemon=True).start()
        _log_drops(engine, stopped)
    except (CompileError, DataPlaneError):
        if not stopped.is_set():  # otherwise the compiler was ended
            raise
    finally:
        if thrift is not None:
            thrift.stop()
        ended = server.stop()
        engine.close()
    if not ended:
        os._exit(OK)  # do not wait for running requests


def _end_in_time(stopped: threading.Event) -> None:
    """End the process END_S after `stopped`, even if a client floods the server or has it compile."""
    stopped.wait()
    time.sleep(END_S)
    os._exit(OK)


def _packet_files(options: SwitchOptions) -> PacketFiles:
    """Return the packet files of the ports; raises ServerError or OSError."""
    try:
        return PacketFiles(options.ports)
    except ValueError as error:
        raise ServerError(str(error)) from None


def _p4runtime_server(options: SwitchOptions, engine: EmbeddedEngine) -> P4RuntimeServer:
    """Return the server at the options' address, or at another port if theirs is in use and may be changed.

    Raises ServerError.
    """
    from v1model.p4runtime.server import P4RuntimeServer

    try:
        return P4RuntimeServer(options.address, options.device_id, engine, options.tls)
    except ServerError:
        if not options.may_listen_elsewhere:
            raise
        host = options.address.rpartition(":")[0]
        return P4RuntimeServer(f"{host}:0", options.device_id, engine, options.tls)


def _log_drops(engine: EmbeddedEngine, stopped: threading.Event) -> None:
    """Log dropped packets until `stopped` is set."""
    drops = DropLog()
    while not stopped.wait(LOG_DROPS_EVERY_S):
        if statistics := engine.statistics():
            drops.report(statistics)


class _OwnCalls:
    """Calls that weir-cli makes besides P4Runtime."""

    def __init__(self, engine: EmbeddedEngine, dispatcher: Dispatcher) -> None:
        self.statistics, self.limit_queues = engine.statistics, engine.limit_queues
        self.call, self.only_reads = dispatcher.answer_message, dispatcher.only_reads


def _listen(port: int, process: SwitchUnderP4Runtime, dispatcher: Dispatcher) -> ThriftServer:
    """Listen for Thrift calls. Raises ServerError if the port is in use."""
    from v1model.thrift.server import ThriftServer

    try:
        server = ThriftServer(port, dispatcher)
    except OSError as error:
        raise ServerError(f"--thrift-port {port}: {error.strerror}") from None
    process.thrift_port = server.port
    return server


def load_config(program: Path, externs: ExternSource | None = None) -> p4runtime_pb2.ForwardingPipelineConfig:
    """Return the pipeline of a P4 program, or of a device config that was made from one."""
    is_source = program.suffix == ".p4"
    if is_source:
        config = DeviceConfig(str(program), preprocess(program))
    else:
        config = DeviceConfig.decode(program.read_bytes())
    source = Source(config.source, config.name, externs, open_files=is_source)
    compiled = sandboxed_compile(source)
    for warning in compiled.warnings:
        logging.warning("%s", render_one(warning))
    info = p4info(compiled.program)
    return p4runtime_pb2.ForwardingPipelineConfig(p4info=info, p4_device_config=config.encode())


def _fail(message: str, code: int) -> int:
    print(f"weir-switch: {message}", file=sys.stderr)
    return code
