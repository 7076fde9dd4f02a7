"""Command line of the compiler (`weir-p4c`, `python -m v1model compile`), like that of p4c-bm2-ss."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import json_format, text_format

from v1model import without_effect
from v1model.backend.extern_source import ExternSource
from v1model.compile import compile_text
from v1model.diagnostics import DEFAULT_MAX_ERRORS
from v1model.errors import CompileError
from v1model.frontend import render
from v1model.frontend.preprocess import preprocess
from v1model.p4info import p4info
from v1model.p4info.bmv2_description import describe
from v1model.p4runtime.device_config import DeviceConfig
from v1model.version import Version
from v1model.warning_options import WARNING_OPTIONS, take_warning_options

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, REFUSED, USAGE = 0, 1, 2

DESCRIPTION = """\
Checks and compiles a v1model program for the embedded switch, with the options of p4c-bm2-ss.

  weir-p4c --p4v 16 --p4runtime-files build/prog.p4info.txtpb -o build/prog.json prog.p4
  weir-switch -i 1@veth1 -i 2@veth2 build/prog.json
"""
FORMATS = {
    ".bin": "binary",
    ".json": "json",
    ".txt": "text",
    ".txtpb": "text",
    ".pbtxt": "text",
}
# p4c's options about how it works or what it shows, with the number of their values.
WITHOUT_EFFECT: dict[str, int | str | None] = {
    "--Wwarn": "?",
    "--Winfo": "?",
    "--emit-externs": 0,
    "--disable-annotations": "?",
    "--pp": None,
    "--toJSON": None,
    "--dump": None,
    "--top4": None,
    "-T": None,
    "-g": 0,
    "-v": 0,
    "--ndebug": 0,
    "--parser-inline-opt": 0,
    "--loopsUnroll": 0,
    "--excludeFrontendPasses": None,
    "--excludeMidendPasses": None,
    "-O": None,
}
REFUSED_OPTIONS = {
    "--p4runtime-entries-file": "a switch has the program's entries from its device config",
    "--p4runtime-entries-files": "a switch has the program's entries from its device config",
    "--fromJSON": "give the P4_16 program",
    "--nocpp": "every program is preprocessed, and one that was already stays as it is",
}
DRIVER = "p4c"  # the name under which -o is a folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile one program; returns 1, after printing place and reason, if it is refused."""
    given, warnings = take_warning_options(list(sys.argv[1:] if arguments is None else arguments))
    # The value of such an option can only follow `=`.
    given = [f"{word}=" if WITHOUT_EFFECT.get(word) == "?" else word for word in given]
    options = _parser().parse_args(given, argparse.Namespace(warnings=warnings))
    for option in dict.fromkeys(options.without_effect):
        print(f"weir-p4c: {option} makes no difference here", file=sys.stderr)
    wanted = options.warnings
    try:
        text = preprocess(
            options.program, options.include, dict(map(_define, options.define)), options.undefine
        )
        if options.preprocess:
            print(text, end="")
            return OK
        externs = ExternSource.read(options.externs) if options.externs else None
        name = str(options.program)
        compiled = compile_text(
            text, name, externs, quick=not options.full, open_files=True, max_errors=options.max_errors
        )
        if not wanted.show(compiled.warnings):
            return REFUSED
        info = p4info(compiled.program)
        for path in options.p4runtime_files:
            _write(path, _encoded(info, FORMATS[path.suffix]))
        if options.p4runtime_file:
            _write(options.p4runtime_file, _encoded(info, options.p4runtime_format))
        if config := _config_path(options.config, options.program):
            description = describe(compiled.program, compiled.custom_crcs)
            _write(config, DeviceConfig(str(options.program), text).encode(description))
    except CompileError as error:
        print(render(error), file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return REFUSED
    return OK


def _config_path(given: str | None, program: Path) -> Path | None:
    """Return the path of the device config, or None; a folder gets a file, as always with p4c's driver."""
    is_driver = Path(sys.argv[0]).name == DRIVER
    if given is None and not is_driver:
        return None
    path = Path(given or ".")
    is_folder = is_driver or path.is_dir() or str(given).endswith("/")
    return path / program.with_suffix(".json").name if is_folder else path


class _Refuse(argparse.Action):
    def __call__(
        self, parser: argparse.ArgumentParser, found: object, value: object, option: str | None = None
    ) -> None:
        parser.error(f"{option} is not supported: {REFUSED_OPTIONS[str(option)]}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weir-p4c",
        description=DESCRIPTION,
        epilog=WARNING_OPTIONS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", type=Path, help="a P4_16 program for v1model")
    parser.add_argument("-I", dest="include", action="append", type=Path, default=[], metavar="DIR")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("-U", dest="undefine", action="append", default=[], metavar="NAME")
    parser.add_argument("-E", dest="preprocess", action="store_true", help="only preprocess, to stdout")
    parser.add_argument(
        "-o",
        "--config",
        metavar="FILE",
        help="where to write the device config; a folder, too (called as p4c: a folder)",
    )
    parser.add_argument(
        "--p4runtime-files",
        "--p4info",
        type=_files,
        default=[],
        metavar="FILE[,FILE...]",
        help=f"where to write the P4Info; the format is the suffix's: {', '.join(FORMATS)}",
    )
    parser.add_argument(
        "--p4runtime-file", type=Path, metavar="FILE", help="the same to one file, whatever its suffix"
    )
    parser.add_argument(
        "--p4runtime-format", choices=("binary", "json", "text"), default="binary", help="of --p4runtime-file"
    )
    parser.add_argument("--externs", type=Path, metavar="FILE.c", help="C of externs that are not v1model's")
    parser.add_argument(
        "--full-build",
        dest="full",
        action="store_true",
        help="optimise at once; else a switch does it, while it forwards already",
    )
    parser.add_argument(
        "--maxErrorCount",
        dest="max_errors",
        type=_positive,
        default=DEFAULT_MAX_ERRORS,
        metavar="N",
        help=f"stop after N errors (default: {DEFAULT_MAX_ERRORS})",
    )
    parser.add_argument(
        "--std", "--p4v", choices=("p4-16", "p4_16", "16"), default="p4-16", help="P4_16 only"
    )
    parser.add_argument("-b", "--target", choices=("bmv2",))
    parser.add_argument("-a", "--arch", choices=("v1model",))
    parser.add_argument("--version", action=Version, const="P4_16, v1model")
    without_effect.accept(parser, WITHOUT_EFFECT)
    for option in REFUSED_OPTIONS:
        parser.add_argument(option, action=_Refuse, nargs="?", help=argparse.SUPPRESS)
    return parser


def _files(text: str) -> list[Path]:
    files = [Path(part) for part in text.split(",") if part]
    for path in files:
        if path.suffix not in FORMATS:
            raise argparse.ArgumentTypeError(
                f"{path}: no format has that suffix; there are {', '.join(FORMATS)}"
            )
    return files


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _encoded(info: Any, kind: str) -> bytes:
    match kind:
        case "binary":
            return bytes(info.SerializeToString())
        case "json":
            return json_format.MessageToJson(info, preserving_proto_field_name=True).encode()
        case _:
            return text_format.MessageToString(info).encode()


def _define(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    return name, value if equals else "1"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
