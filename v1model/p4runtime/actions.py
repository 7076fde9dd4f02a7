"""Translation of actions on the wire (p4.v1.Action) to `ActionCall` and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from v1model.dataplane import DataPlaneError
from v1model.ir import ActionCall
from v1model.p4runtime import constraints
from v1model.p4runtime.values import is_plain
from v1model.protos.p4.v1 import p4runtime_pb2

if TYPE_CHECKING:
    from v1model import ir
    from v1model.p4runtime.values import CodecFactory
    from v1model.protos.p4.config.v1 import p4info_pb2


class ActionTranslator:
    """Translator of one action of the P4Info: its id, its name and a codec for each parameter."""

    def __init__(self, info: p4info_pb2.Action, action: ir.Action, codecs: CodecFactory) -> None:
        self.id: int = info.preamble.id
        self.name: str = info.preamble.name
        types = {param.name: param.type for param in action.params}
        if [param.name for param in info.params] != list(types):
            raise DataPlaneError(
                "INVALID_ARGUMENT", f"P4Info's parameters of {self.name} are not the program's"
            )
        self._params = {
            param.id: (index, codecs.codec(types[param.name].width, param.type_name.name), param.name)
            for index, param in enumerate(info.params)
        }
        self.param_ids = tuple(self._params)
        self.is_plain = len(self._params) == len(types) and all(
            is_plain(codec, types[name].width) for _, codec, name in self._params.values()
        )
        """Whether no value is translated."""
        self.restriction = constraints.restriction_of(info.preamble, "action_restriction", list(types))
        self._in_order = [(param_id, codec) for param_id, (_, codec, _) in self._params.items()]

    def decode(self, message: p4runtime_pb2.Action) -> ActionCall:
        """Return the call; raises DataPlaneError unless every parameter is given exactly once and fits."""
        arguments: list[int | None] = [None] * len(self._params)
        for param in message.params:
            known = self._params.get(param.param_id)
            if known is None:
                raise DataPlaneError(
                    "INVALID_ARGUMENT", f"{self.name} has no parameter with id {param.param_id}"
                )
            index, codec, name = known
            if arguments[index] is not None:
                raise DataPlaneError("INVALID_ARGUMENT", f"{self.name}: parameter {name} is given twice")
            arguments[index] = codec.decode(param.value)
        if None in arguments:
            missing = [name for index, _, name in self._params.values() if arguments[index] is None]
            raise DataPlaneError("INVALID_ARGUMENT", f"{self.name}: no value for {', '.join(missing)}")
        call = ActionCall(self.name, tuple(arguments))  # type: ignore[arg-type]  # no None is left
        if self.restriction is not None:
            names = (name for _, _, name in self._params.values())
            self.restriction.require(dict(zip(names, call.arguments, strict=True)))
        return call

    def encode(self, call: ActionCall, message: p4runtime_pb2.Action) -> None:
        """Write a call into `message`."""
        message.action_id = self.id
        for (param_id, codec), value in zip(self._in_order, call.arguments, strict=True):
            message.params.add(param_id=param_id, value=codec.encode(value))
