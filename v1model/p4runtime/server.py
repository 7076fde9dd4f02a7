"""gRPC server around the service: its address, its limits, its end."""

from __future__ import annotations

import resource
from concurrent import futures
from typing import TYPE_CHECKING

import grpc

from v1model.p4runtime.address import ServerError
from v1model.p4runtime.calls import MAX_ANSWERED, MAX_RUNNING, MAX_WAITING
from v1model.p4runtime.handlers import MAX_MESSAGE_BYTES, OwnCalls, handlers, own_handlers, queue_handlers
from v1model.p4runtime.service import MAX_STREAMS, P4RuntimeService

if TYPE_CHECKING:
    from v1model.p4runtime.address import TlsFiles
    from v1model.p4runtime.device import Engine

STOP_TIMEOUT_S = 0.5
MAX_CONNECTIONS = 4096  # many: idle ones are closed soon, but block others until then
_OTHER_FILES = 512
# Calls that have just arrived, wait for a primary's request, are being refused or are answered at once.
SPARE_THREADS = 32
THREADS = MAX_STREAMS + MAX_WAITING + MAX_ANSWERED + 2 * MAX_RUNNING + SPARE_THREADS
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),  # a second server on the same port is an error
    # Per connection; its further calls wait at the client. As many as may wait for their request.
    ("grpc.max_concurrent_streams", MAX_WAITING),
    # It refuses calls of a client that respects this limit, while earlier ones are being cleaned up.
    ("grpc.http.overload_protection", 0),
    # If more calls wait to be served, also cancelled ones, gRPC cancels some new ones of any client.
    ("grpc.server.max_pending_requests", 6_000),
    ("grpc.server.max_pending_requests_hard_limit", 12_000),
    ("grpc.max_allowed_incoming_connections", MAX_CONNECTIONS),
    ("grpc.server_handshake_timeout_ms", 5_000),
    (
        "grpc.max_connection_idle_ms",
        60_000,
    ),  # without calls; clients connect again by themselves
    ("grpc.keepalive_time_ms", 60_000),  # a client that disappeared keeps no stream
    ("grpc.keepalive_timeout_ms", 20_000),
)


def allow_connections() -> None:
    """Raise this process's limit of open files to the number of connections, as far as it is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + _OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class P4RuntimeServer:
    """Server of one device at `address`: HOST:PORT (port 0 takes a free one) or unix:PATH."""

    def __init__(
        self,
        address: str,
        device_id: int,
        engine: Engine,
        tls: TlsFiles | None = None,
    ) -> None:
        self.service = P4RuntimeService(device_id, engine)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(THREADS, thread_name_prefix="p4runtime"), options=OPTIONS
        )
        self._server.add_generic_rpc_handlers((handlers(self.service),))
        self.port = self._bind(address, tls)
        host, colon, port = address.rpartition(":")
        self.address = f"{host}:{self.port}" if colon and port.isdigit() else address

    def serve_own_calls(self, own: OwnCalls) -> None:
        """Serve weir-cli's calls, too; call it before `start`."""
        both = own_handlers(self.service, own), queue_handlers(self.service, own.limit_queues)
        self._server.add_generic_rpc_handlers(both)

    def start(self) -> None:
        self._server.start()

    def stop(self, grace_s: float = 0.2) -> bool:
        """End streams, and running requests after `grace_s` at the latest.

        Returns False if one of them, which compiles a program, continues.
        """
        stopped = self._server.stop(grace_s)
        ended = self.service.close()
        return stopped.wait(STOP_TIMEOUT_S) and ended

    def _bind(self, address: str, tls: TlsFiles | None) -> int:
        try:
            if tls is None:
                return int(self._server.add_insecure_port(address))
            return int(self._server.add_secure_port(address, _credentials(tls)))
        except RuntimeError:
            raise ServerError(
                f"can't listen on {address}: the port is in use or the address is not this machine's "
                "(another one: -- --grpc-server-addr HOST:PORT)"
            ) from None


def _credentials(tls: TlsFiles) -> grpc.ServerCredentials:
    try:
        pair = tls.key.read_bytes(), tls.certificate.read_bytes()
        client_ca = tls.client_ca.read_bytes() if tls.client_ca else None
    except OSError as error:
        raise ServerError(f"can't read {error.filename}: {error.strerror}") from None
    return grpc.ssl_server_credentials([pair], client_ca, require_client_auth=client_ca is not None)
