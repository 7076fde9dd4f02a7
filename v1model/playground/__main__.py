"""weir-playground: P4 in a browser, on this machine."""

from __future__ import annotations

import argparse
import contextlib
import sys
import webbrowser
from typing import TYPE_CHECKING

from v1model.playground.server import PlaygroundServer

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, FAILURE = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; returns 1 if the port is in use."""
    parser = argparse.ArgumentParser(prog="weir-playground", description=__doc__)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="of 127.0.0.1 (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    options = parser.parse_args(arguments)
    try:
        server = PlaygroundServer(options.port)
    except (OSError, OverflowError) as error:
        print(f"weir-playground: port {options.port}: {error}", file=sys.stderr)
        return FAILURE
    print(f"{server.url}\nWhoever has this address can run programs here; Ctrl+C ends it.", flush=True)
    if not options.no_browser:
        webbrowser.open(server.url)
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    return OK


if __name__ == "__main__":
    sys.exit(main())
