"""The gRPC server around the service: its address, its limits, its end."""

from __future__ import annotations

from concurrent import futures
from typing import TYPE_CHECKING

import grpc

from v1model.p4runtime.address import ServerError
from v1model.p4runtime.service import MAX_STREAMS, P4RuntimeService
from v1model.protos.p4.v1 import p4runtime_pb2_grpc

if TYPE_CHECKING:
    from v1model.p4runtime.address import TlsFiles
    from v1model.p4runtime.device import Engine

# The largest device config, or some 200,000 table entries. A message is in memory several times over.
MAX_MESSAGE_BYTES = 32 << 20
UNARY_WORKERS = 8


class P4RuntimeServer:
    """Serves one device at `address`: HOST:PORT (port 0 takes a free one) or unix:PATH."""

    def __init__(self, address: str, device_id: int, engine: Engine, tls: TlsFiles | None = None) -> None:
        self.service = P4RuntimeService(device_id, engine)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(MAX_STREAMS + UNARY_WORKERS, thread_name_prefix="p4runtime"),
            maximum_concurrent_rpcs=MAX_STREAMS + 2 * UNARY_WORKERS,  # more are refused, not queued
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.so_reuseport", 0),  # a second server on the same port is an error
            ],
        )
        p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server(self.service, self._server)
        self.port = self._bind(address, tls)
        host, colon, port = address.rpartition(":")
        self.address = f"{host}:{self.port}" if colon and port.isdigit() else address

    def start(self) -> None:
        self._server.start()

    def stop(self, grace_s: float = 0.2) -> bool:
        """Ends streams, then requests that are under way after `grace_s` at the latest; False if one of
        them, which compiles a program, goes on."""
        stopped = self._server.stop(grace_s)
        ended = self.service.close()
        stopped.wait()
        return ended

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
