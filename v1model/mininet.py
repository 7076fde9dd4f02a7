"""The embedded switch as a Mininet node. Nothing else in `v1model` needs Mininet.

from functools import partial
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
from v1model.mininet import P4Host, P4Switch

switch = partial(P4Switch, program="prog.p4", grpc_port=9559)
net = Mininet(SingleSwitchTopo(2), host=P4Host, switch=switch, controller=None)
"""

from __future__ import annotations

import itertools
import selectors
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mininet.node import Host, Switch

if TYPE_CHECKING:
    from collections.abc import Sequence

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
_GUARD = ("setpriv", "--pdeathsig", "TERM", "--")  # ends the switch when Mininet dies


class SwitchError(Exception):
    """A switch did not start; the message has its output."""


def _offloads_off(node: Any) -> None:
    """Turn offloads off: a P4 switch would see unfinished checksums and oversized segments."""
    for interface in node.intfList():
        if interface.name != "lo":
            node.cmd(f"ethtool -K {interface.name} rx off tx off sg off tso off gso off gro off")


class P4Host(Host):  # type: ignore[misc] # mininet ships no types
    """Host that finishes its checksums before packets leave."""

    def config(self, **parameters: Any) -> Any:
        result = super().config(**parameters)
        _offloads_off(self)
        return result


class P4Switch(Switch):  # type: ignore[misc] # mininet ships no types
    """Embedded switch; port N of the program is the interface sX-ethN.

    `program` is a P4 program or a device config; with None a controller will set one. `grpc_port` 0 takes a
    free port. `address` is that of P4Runtime once the switch runs. `options` go to weir-switch unchanged,
    such as ("--pcap", "pcaps"). The switch's stderr is in the file `log`.
    """

    _device_ids = itertools.count()

    def __init__(
        self,
        name: str,
        program: str | Path | None = None,
        grpc_port: int = 0,
        device_id: int | None = None,
        cpu_port: int | None = None,
        options: Sequence[str] = (),
        **parameters: Any,
    ) -> None:
        super().__init__(name, **parameters)
        self.program, self.cpu_port, self.options = program, cpu_port, tuple(options)
        self.device_id = next(self._device_ids) if device_id is None else device_id
        self.address = f"127.0.0.1:{grpc_port}"
        self.log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, controllers: Any) -> None:
        """Start the switch; return once packets are forwarded and P4Runtime is served. Raises SwitchError."""
        _offloads_off(self)
        self.log = tempfile.NamedTemporaryFile(prefix=f"{self.name}-", suffix=".log")  # noqa: SIM115
        # Not Node.popen: mnexec joins the mount namespace too, which leaves a chroot.
        namespace = f"--net=/proc/{self.pid}/ns/net"
        command = ["nsenter", namespace, *self._command()] if self.inNamespace else self._command()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        said = self._first_line()
        if not said.startswith("listening on "):
            self.stop(deleteIntfs=False)
            raise SwitchError(f"{self.name}: {Path(self.log.name).read_text().strip() or 'no answer'}")
        self.address = said.split()[-1]

    def _command(self) -> list[str]:
        ports = [
            argument
            for number, interface in self.intfs.items()
            if interface.name != "lo"
            for argument in ("-i", f"{number}@{interface.name}")
        ]
        what = [str(self.program)] if self.program else ["--no-p4"]
        cpu = ["--cpu-port", str(self.cpu_port)] if self.cpu_port is not None else []
        general = ["--device-id", str(self.device_id), *ports, *self.options, *what]
        target = ["--grpc-server-addr", self.address, *cpu]
        return [*_GUARD, sys.executable, "-m", "v1model", "switch", *general, "--", *target]

    def _first_line(self) -> str:
        """Return the switch's first line, printed when it is ready; "" if it ended or takes too long."""
        assert self._process is not None
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(START_TIMEOUT_S):
                return ""
        return self._process.stdout.readline().decode()

    def stop(self, deleteIntfs: bool = True) -> None:  # mininet's name
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
        super().stop(deleteIntfs)
