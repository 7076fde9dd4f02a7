"""Options of BMv2's tools without an effect here: accepted, so that scripts work, and reported."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Note(argparse.Action):
    def __call__(
        self, parser: object, found: argparse.Namespace, value: object, option: object = None
    ) -> None:
        found.without_effect = [*found.without_effect, str(option)]


def accept(parser: argparse.ArgumentParser, options: Mapping[str, int | str | None]) -> None:
    """Add options with their argparse `nargs`; those that are given are listed in `without_effect`."""
    parser.set_defaults(without_effect=[])
    for option, nargs in options.items():
        parser.add_argument(option, action=_Note, nargs=nargs, help=argparse.SUPPRESS)
