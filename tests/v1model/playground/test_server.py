"""The playground's server: a token, this machine's names only, and bounds."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.v1model.playground.test_run import document
from v1model.playground import server as playground
from v1model.playground.document import MAX_DOCUMENT_BYTES
from v1model.playground.server import FILES, PlaygroundServer


@pytest.fixture(scope="module")
def server() -> Iterator[PlaygroundServer]:
    with PlaygroundServer() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(url: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.parametrize("name", FILES)
def test_the_page_and_its_files(server: PlaygroundServer, name: str) -> None:
    status, content = ask(server.url + name)
    assert status == 200
    assert content


def test_it_listens_on_loopback_alone(server: PlaygroundServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_nothing_without_the_token(server: PlaygroundServer) -> None:
    base = server.url.removesuffix(f"{server.token}/")
    for path in ("", "app.js", "wrong/", f"{server.token[:-1]}/", "wrong/run"):
        assert ask(base + path)[0] == 404
    assert ask(base + "wrong/run", b"{}")[0] == 404


def test_other_names_and_pages_are_refused(server: PlaygroundServer) -> None:
    assert ask(server.url, Host="evil.example")[0] == 404
    assert ask(server.url + "run", b"{}", Origin="http://evil.example")[0] == 404
    assert ask(server.url, Host=f"localhost:{server.server_port}")[0] == 200


def test_no_file_but_those_of_the_page(server: PlaygroundServer) -> None:
    for name in ("../server.py", "source/editor.mjs", "%2e%2e/run.py", "app.js/"):
        assert ask(server.url + name)[0] == 404


def test_a_document_is_run(server: PlaygroundServer) -> None:
    status, content = ask(server.url + "run", json.dumps(document()).encode())
    assert status == 200
    assert json.loads(content)["packets"][0]["outputs"][0]["port"] == 7


def test_documents_have_a_size(server: PlaygroundServer) -> None:
    status, _ = ask(server.url + "run", b"x", **{"Content-Length": str(MAX_DOCUMENT_BYTES + 1)})
    assert status == 413


def pcap(*frames: bytes, kind: int = 1) -> bytes:
    content = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, kind)
    for number, frame in enumerate(frames):
        content += struct.pack("<IIII", 100, 7 * number, len(frame), len(frame)) + frame
    return content


def test_packets_of_a_pcap_file(server: PlaygroundServer) -> None:
    said = json.loads(ask(server.url + "pcap", pcap(b"\x01\x02", b"\x03"))[1])
    assert said["packets"] == [
        {"text": "0102", "port": 0, "time_us": 0},
        {"text": "03", "port": 0, "time_us": 7},
    ]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no pcap"),
        (b"x" * 100, "no pcap"),
        (pcap(kind=113), "Ethernet"),
        (pcap(b"abc")[:-1], "does not end"),
    ],
)
def test_what_is_no_pcap_file(server: PlaygroundServer, content: bytes, word: str) -> None:
    assert word in json.loads(ask(server.url + "pcap", content)[1])["error"]


def test_connections_that_say_nothing_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user of this machine has no token. The page is there again when the connections are closed."""
    monkeypatch.setattr(playground.PlaygroundServer, "max_connections", 3)
    with PlaygroundServer() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        address = ("127.0.0.1", found.server_port)
        silent = [socket.create_connection(address, timeout=10) for _ in range(3)]
        with socket.create_connection(address, timeout=10) as fourth:
            assert fourth.recv(1) == b""
        for one in silent:
            one.close()
        until_s = time.monotonic() + 30
        while not _is_there(found.url) and time.monotonic() < until_s:
            time.sleep(0.01)
        assert _is_there(found.url)
        found.shutdown()
        thread.join()


def _is_there(url: str) -> bool:
    try:
        return ask(url)[0] == 200
    except (urllib.error.URLError, ConnectionError, http.client.HTTPException):
        return False
