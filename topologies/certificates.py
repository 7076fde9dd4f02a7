"""Certificates for one run: a new authority's, the switches' and the controller's.

openssl makes them when a network starts, and they are deleted with its directory: there is no secret to store
and nothing to configure. The authority signs both certificates. Each end accepts the other's only with that
signature, and only for its purpose.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from topologies.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SERVER_NAME: Final = "switch.weir"
"""Name in the switches' certificate: their sockets have no name of their own."""
_DAYS: Final = 2
_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of the PEM files."""

    authority: Path
    server_certificate: Path
    server_key: Path
    client_certificate: Path
    client_key: Path


def make_certificates(directory: Path) -> Certificates:
    """Make new certificates in `directory`; raises EngineError if openssl can't make them.

    Only we must be able to read the directory.
    """
    certificates = Certificates(
        directory / "ca.crt", directory / "server.crt", directory / "server.key",
        directory / "client.crt", directory / "client.key",
    )  # fmt: skip
    authority_key = directory / "ca.key"
    authority = ("-addext", "basicConstraints=critical,CA:true", "-addext", "keyUsage=critical,keyCertSign")
    _make("authority.weir", certificates.authority, authority_key, authority)
    signer = ("-CA", str(certificates.authority), "-CAkey", str(authority_key))
    signed = (*signer, "-addext", "basicConstraints=CA:false")
    names = ("-addext", f"subjectAltName=DNS:{SERVER_NAME}", "-addext", "extendedKeyUsage=serverAuth")
    _make(SERVER_NAME, certificates.server_certificate, certificates.server_key, (*signed, *names))
    client = ("-addext", "extendedKeyUsage=clientAuth")
    _make("controller.weir", certificates.client_certificate, certificates.client_key, (*signed, *client))
    authority_key.unlink()  # nothing more is going to be signed
    return certificates


def _make(name: str, certificate: Path, key: Path, extensions: Sequence[str]) -> None:
    command = ["openssl", "req", "-x509", *_NEW_KEY, "-days", str(_DAYS), "-subj", f"/CN={name}"]
    files = ("-keyout", str(key), "-out", str(certificate))
    try:
        subprocess.run([*command, *files, *extensions], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise EngineError("SECURE=1 needs openssl: apt install openssl") from None
    except subprocess.CalledProcessError as error:
        raise EngineError(f"openssl could not make the certificate of {name}:\n{error.stderr}") from None
