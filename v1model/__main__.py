"""python -m v1model compile | switch: the compiler's and the switch's command lines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from google.protobuf import text_format

from v1model import cli
from v1model.compile import compile_text
from v1model.errors import CompileError
from v1model.frontend import render
from v1model.frontend.preprocess import preprocess
from v1model.p4info import p4info
from v1model.p4runtime.device_config import DeviceConfig

USAGE = """\
usage: python -m v1model compile PROGRAM.p4 [-I DIR] [-D NAME[=VALUE]] [--p4info FILE] [--config FILE]
       python -m v1model switch [-i PORT@IF]... [PROGRAM | --no-p4] [-- --grpc-server-addr ADDR ...]
       python -m v1model.stf DIR

compile   checks and compiles a program; writes its P4Info and the device config for P4Runtime
switch    runs the embedded switch, with simple_switch_grpc's options (also installed as weir-switch)

Each of them takes --help."""


def main() -> int:
    """The exit code of the subcommand; 2 if there is no such one."""
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command == "switch":
        return cli.main(arguments)
    if command == "compile":
        return compile_command(arguments)
    print(USAGE, file=sys.stdout if command in ("-h", "--help") else sys.stderr)
    return 0 if command in ("-h", "--help") else 2


def compile_command(arguments: list[str]) -> int:
    """Compiles one program; 1, with the place and the reason, if it is refused."""
    options = _compile_options(arguments)
    try:
        text = preprocess(options.program, options.include, dict(_define(d) for d in options.define))
        compiled = compile_text(text, str(options.program))
        if options.p4info:
            _write(options.p4info, text_format.MessageToString(p4info(compiled.program)).encode())
        if options.config:
            _write(options.config, DeviceConfig(str(options.program), text).encode())
    except CompileError as error:
        print(render(error), file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _compile_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m v1model compile", description="Compiles a v1model program."
    )
    parser.add_argument("program", type=Path, help="a P4_16 program for v1model")
    parser.add_argument("-I", dest="include", action="append", type=Path, default=[], metavar="DIR")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("--p4info", type=Path, metavar="FILE", help="where to write the P4Info (text format)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="where to write the device config")
    return parser.parse_args(arguments)


def _define(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "1"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
