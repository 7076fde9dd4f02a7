"""python -m v1model: the switch, the compiler and their helpers as subcommands."""

from __future__ import annotations

import sys
from importlib import import_module

# Imported on demand: gRPC takes its settings from the environment when it is imported.
COMMANDS = {
    "switch": "v1model.cli",
    "compile": "v1model.p4c",
    "trace": "v1model.stf.tracing",
    "cli": "v1model.remote.cli",
    "playground": "v1model.playground.__main__",
}

USAGE = """\
usage: python -m v1model PROGRAM.p4 -i PORT@IF [-i PORT@IF]...
       python -m v1model compile PROGRAM.p4 [-o FILE] [--p4runtime-files FILE] [-I DIR] [-D NAME[=VALUE]]
       python -m v1model switch [-i PORT@IF]... [PROGRAM | --no-p4] [-- --grpc-server-addr ADDR ...]
       python -m v1model trace PROGRAM.p4 FILE.stf
       python -m v1model cli [--address ADDR] [-c COMMAND]
       python -m v1model playground [--port N]
       python -m v1model.stf DIR
       python -m v1model.corpus DIR

PROGRAM   runs it on these interfaces: `switch` with a program, without the word
compile   checks and compiles a program; writes its P4Info and the device config for P4Runtime (weir-p4c)
switch    runs the embedded switch, with simple_switch_grpc's options (weir-switch)
cli       simple_switch_CLI's commands, over P4Runtime (weir-cli)
playground  P4 in a browser: program, entries, packets and their ways through it (weir-playground)
trace     runs an STF file's packets and shows, step by step, what each of them does

Each of them takes --help."""


def main() -> int:
    """Run a subcommand and return its exit code; 2 if there is no such one."""
    command, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command in COMMANDS:
        return int(import_module(COMMANDS[command]).main(arguments))
    if any(argument.endswith((".p4", ".json")) for argument in sys.argv[1:]):
        return int(import_module(COMMANDS["switch"]).main(sys.argv[1:]))
    print(USAGE, file=sys.stdout if command in ("-h", "--help") else sys.stderr)
    return 0 if command in ("-h", "--help") else 2


if __name__ == "__main__":
    sys.exit(main())
