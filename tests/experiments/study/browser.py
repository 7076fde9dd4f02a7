"""A headless Chromium, driven over its DevTools protocol."""

import asyncio
import json
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tornado.httpclient import AsyncHTTPClient
from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
START_S = 60.0
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--remote-debugging-port=0",
)  # fmt: skip


class Page:
    """One tab; `trouble` collects what the page complained of and what it asked of the network."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.trouble: list[str] = []
        self._socket = socket
        self._number = 0
        self._loaded = False

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command and its result."""
        self._number += 1
        number = self._number
        await self._socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = await self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]  # type: ignore[no-any-return]

    async def open(self, url: str) -> None:
        """Load a page."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        self._loaded = False
        await self.call("Page.navigate", url=url)
        while not self._loaded:
            await self._next()

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        result = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def _next(self) -> dict[str, Any]:
        text = await asyncio.wait_for(self._socket.read_message(), START_S)
        assert text is not None, "the browser hung up"
        message: dict[str, Any] = json.loads(text)
        method, details = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.trouble.append(json.dumps(details))
        elif method == "Network.requestWillBeSent":
            address = details["request"]["url"]
            if not address.startswith(("file:", "data:")):
                self.trouble.append(f"asks for {address}")
        return message


@asynccontextmanager
async def browser_page() -> AsyncIterator[Page]:
    """A tab of a browser of its own, with a new profile."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort", process)
            socket = await websocket_connect(await _tab(port), max_message_size=1 << 28)
            yield Page(socket)
            socket.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    """The port that the browser says it listens on."""
    async with asyncio.timeout(START_S):
        while not (file.exists() and file.read_text().count("\n")):
            assert process.poll() is None, "the browser ended"
            await asyncio.sleep(0.05)
    return int(file.read_text().splitlines()[0])


async def _tab(port: int) -> str:
    """The WebSocket address of the first tab."""
    async with asyncio.timeout(START_S):
        while True:
            answer = await AsyncHTTPClient().fetch(f"http://127.0.0.1:{port}/json/list")
            tabs = [tab for tab in json.loads(answer.body) if tab["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
            await asyncio.sleep(0.05)
