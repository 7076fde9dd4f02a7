"""Servers of a test: network namespaces with an sshd, keys and a home each, linked by one bridge.

They share this machine's kernel and file system. Each has a monotonic clock of its own (time namespaces).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cluster.checkout import copy
from cluster.servers import read_servers
from emulator.result import ROOT
from tests.cluster.quota import cpu_group

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin:/bin")
NETWORK = "10.77.0"
BRIDGE = "weirbr"
POLL_S = 0.05
GUARD = ("setpriv", "--pdeathsig", "KILL", "--")
"""Ends a server with the test that made it."""
SESSION = 'exec sh -c "$SSH_ORIGINAL_COMMAND"'
"""What a login does."""
READY_S = 20.0
CLOCK_STEP_S = 1000
"""Monotonic clocks of two servers in turn differ by it. CLOCK_BOOTTIME is left alone: by it the kernel says
when processes began, and so networks know which are theirs."""


def missing() -> str:
    """Return why there can be no servers here; "" if there can."""
    if os.geteuid() != 0:
        return "servers of a test are network namespaces, which need root"
    if SSHD is None or shutil.which("ssh") is None:
        return "servers of a test need sshd and ssh: apt-get install openssh-server"
    return ""


@dataclass
class TestServer:
    """One server."""

    __test__ = False
    name: str
    address: str
    home: Path
    namespace: str
    number: int
    checkout: Path
    groups: tuple[Path, ...] = ()
    """Files that take the ids of processes that share a quota."""
    sshd: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        """Start its sshd, and wait until it listens."""
        assert SSHD is not None
        offset = str(CLOCK_STEP_S * (self.number - 1))
        join = "".join(f"echo $$ > {shlex.quote(str(group))}; " for group in self.groups)
        command = ["sh", "-c", f'{join}exec "$@"', "sh"]
        command += ["unshare", "--time", "--monotonic", offset, "--fork", "--kill-child"]
        log = self.home / "sshd.log"
        with log.open("wb") as said:
            self.sshd = subprocess.Popen(
                [*GUARD, "ip", "netns", "exec", self.namespace, *command, SSHD, "-De", "-f", self.config],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )  # fmt: skip
        deadline_s = time.monotonic() + READY_S
        while "Server listening" not in log.read_text(errors="replace"):
            assert self.sshd.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline_s, log.read_text(errors="replace")
            time.sleep(POLL_S)

    @contextlib.contextmanager
    def sessions_begin_with(self, script: str) -> Iterator[None]:
        """Whoever logs in gets what this script, of a shell, ends with instead of a shell."""
        self._session.write_text(script)
        try:
            yield
        finally:
            self._session.write_text(SESSION)

    @contextlib.contextmanager
    def sessions_see(self, *commands: str) -> Iterator[None]:
        """The same for a shell in a mount namespace in which these commands were run before."""
        inside = " && ".join((*commands, SESSION))
        with self.sessions_begin_with(f"exec unshare --mount -- sh -c {shlex.quote(inside)}"):
            yield

    @property
    def _session(self) -> Path:
        return self.home / "session"

    @property
    def config(self) -> str:
        """Of its sshd."""
        return str(self.home / "sshd_config")

    def restart(self) -> None:
        """Have it back after `kill`."""
        self.sshd.wait()
        subprocess.run(["ip", "link", "set", f"weir-{self.name}", "up"], check=True)
        self.start()

    def link_environment(self) -> None:
        """Give its checkout the environment of this one, in place of a set-up."""
        (self.checkout / ".venv").symlink_to((ROOT / ".venv").resolve())

    def processes(self) -> list[psutil.Process]:
        """Return all processes in its network namespace, and those below its sshd."""
        inside = subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=False
        ).stdout.split()
        found = {int(pid) for pid in inside}
        with contextlib.suppress(psutil.NoSuchProcess):
            found |= {child.pid for child in psutil.Process(self.sshd.pid).children(recursive=True)}
        alive = []
        for pid in sorted(found):
            with contextlib.suppress(psutil.NoSuchProcess):
                alive.append(psutil.Process(pid))
        return alive

    def kill(self) -> None:
        """End it as a power cut does: all of its processes at once, and its cable."""
        subprocess.run(["ip", "link", "set", f"weir-{self.name}", "down"], check=False, capture_output=True)
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=5)


@dataclass
class TestServers:
    """All servers, and how to reach them."""

    __test__ = False
    folder: Path
    servers: dict[str, TestServer] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """What SERVERS names."""
        return self.folder / "servers.toml"

    def copy_checkout(self) -> None:
        """Give each server this checkout by SSH, with the environment of this one."""
        for server in read_servers([str(self.file)]):
            there = self.servers[server.name]
            there.checkout = there.home / "checkout"
            copy(server, str(there.checkout))
            there.link_environment()
        self.write_file(tuple(self.servers))

    def write_file(self, names: Sequence[str], more: Mapping[str, str] | None = None) -> Path:
        """Write the file for some of the servers; `more`: further lines by server."""
        lines = ['ssh_config = "ssh_config"']
        for name in names:
            lines += [f"[{name}]", f'folder = "{self.servers[name].checkout}"', (more or {}).get(name, "")]
        self.file.write_text("\n".join(lines) + "\n")
        return self.file


@contextlib.contextmanager
def make_servers(names: Sequence[str], cores: float | None) -> Iterator[TestServers]:
    """Servers with these names, from which this process is reached as 10.77.0.1; gone at the end.

    `cores`: what each may use of the CPU; None: all. Raises OSError where the kernel gives no quotas.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-servers-")))
        made = TestServers(folder)
        _keygen(folder / "key")
        _run(f"ip link del {BRIDGE}", False)  # what a test that was killed left
        _run(f"ip link add {BRIDGE} type bridge")
        stack.callback(_run, f"ip link del {BRIDGE}", False)
        _run(f"ip addr add {NETWORK}.1/24 dev {BRIDGE}")
        _run(f"ip link set {BRIDGE} up")
        for number, name in enumerate(names, 2):
            made.servers[name] = stack.enter_context(_server(folder, name, number, cores))
        _write_ssh_config(made)
        made.write_file(names)
        yield made


@contextlib.contextmanager
def _server(folder: Path, name: str, number: int, cores: float | None) -> Iterator[TestServer]:
    namespace, cable = f"weir-{name}", f"weir-{name}"
    with contextlib.ExitStack() as stack:
        groups = () if cores is None else stack.enter_context(cpu_group(f"weir-{name}", cores))
        _run(f"ip netns del {namespace}", False)
        _run(f"ip netns add {namespace}")
        stack.callback(_run, f"ip netns del {namespace}", False)
        _run(f"ip link add {cable} type veth peer name eth0 netns {namespace}")
        stack.callback(_run, f"ip link del {cable}", False)
        _run(f"ip link set {cable} master {BRIDGE} up")
        for command in (
            "ip link set lo up",
            f"ip addr add {NETWORK}.{number}/24 dev eth0",
            "ip link set eth0 up",
        ):
            _run(f"ip netns exec {namespace} {command}")
        home = folder / name
        (home / "run").mkdir(parents=True)
        (home / "session").write_text(SESSION)
        _keygen(home / "host_key")
        config = home / "sshd_config"
        config.write_text(
            f"Port 22\nListenAddress {NETWORK}.{number}\nHostKey {home}/host_key\n"
            f"AuthorizedKeysFile {folder}/key.pub\nPidFile {home}/sshd.pid\nStrictModes no\nUsePAM no\n"
            f"PasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME={home}\nUseDNS no\n"
            f"MaxStartups 100\nPermitUserEnvironment no\nForceCommand sh {home}/session\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        server = TestServer(name, f"{NETWORK}.{number}", home, namespace, number, ROOT, groups)
        server.start()
        stack.callback(_end, server)
        yield server


def _end(server: TestServer) -> None:
    server.sshd.send_signal(signal.SIGTERM)
    server.kill()
    server.sshd.wait()


def _write_ssh_config(made: TestServers) -> None:
    known = made.folder / "known_hosts"
    lines: list[str] = []
    for server in made.servers.values():
        public = (server.home / "host_key.pub").read_text().split()
        with known.open("a") as file:
            file.write(f"{server.address} {public[0]} {public[1]}\n")
        lines += [
            f"Host {server.name}", f"  HostName {server.address}", "  User root",
            f"  IdentityFile {made.folder}/key", "  IdentitiesOnly yes",
            f"  UserKnownHostsFile {known}",
        ]  # fmt: skip
    (made.folder / "ssh_config").write_text("\n".join(lines) + "\n")


def _keygen(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, capture_output=True)


def _run(command: str, check: bool = True) -> None:
    done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{command}: {done.stderr}"
