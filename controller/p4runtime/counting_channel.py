"""A gRPC channel that counts the bytes of its messages where they are (de)serialised anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

    from controller.costs import Costs


class CountingChannel:
    """Channel for a generated stub that counts requests and bytes."""

    def __init__(self, channel: grpc.Channel, costs: Costs) -> None:
        self._channel, self._costs = channel, costs

    def unary_unary(self, method: str, **codecs: Any) -> Any:
        return self._channel.unary_unary(method, **self._counting("rpc", **codecs))

    def unary_stream(self, method: str, **codecs: Any) -> Any:
        return self._channel.unary_stream(method, **self._counting("rpc", **codecs))

    def stream_stream(self, method: str, **codecs: Any) -> Any:
        return self._channel.stream_stream(method, **self._counting("stream", **codecs))

    def close(self) -> None:
        self._channel.close()

    def _counting(
        self,
        kind: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        **options: Any,
    ) -> dict[str, Any]:
        costs, sent, received = self._costs, f"{kind}_bytes_sent", f"{kind}_bytes_received"

        def serialize(message: Any) -> bytes:
            data = request_serializer(message)
            setattr(costs, sent, getattr(costs, sent) + len(data))
            return data

        def deserialize(data: bytes) -> Any:
            setattr(costs, received, getattr(costs, received) + len(data))
            return response_deserializer(data)

        return {"request_serializer": serialize, "response_deserializer": deserialize, **options}
