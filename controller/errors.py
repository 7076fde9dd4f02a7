"""Everything that the controller raises.

ControllerError
├── ConfigError             a configuration that can't be used; the text names file and field
├── P4InfoError             the switch's program lacks what the controller needs
└── SwitchError             a switch did not do what it was asked for; the text names it
    ├── ConnectionLostError its session ended, or it does not answer; try again later
    └── NotPrimaryError     another controller is the primary one
"""

from __future__ import annotations


class ControllerError(Exception):
    """Root of the tree."""


class ConfigError(ControllerError):
    """A configuration that can't be used."""


class P4InfoError(ControllerError):
    """A name that the P4Info does not have."""


class SwitchError(ControllerError):
    """A switch refused a request."""


class ConnectionLostError(SwitchError):
    """The switch can't be reached, or stopped answering."""


class NotPrimaryError(SwitchError):
    """The switch takes writes from another controller."""
