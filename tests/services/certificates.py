"""An authority of our own and what it signs, made by the machine's openssl: for services that speak TLS."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.services.needs import Missing

# What Python 3.13 asks of certificates besides: who signed, and what for.
EXTENSIONS = """
[req]
distinguished_name=name
[name]
[authority]
basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign,cRLSign
subjectKeyIdentifier=hash
[signed]
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=DNS:localhost,IP:127.0.0.1
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]  # PKCS#8, as Kafka reads it


class Authority:
    """`ca` is its certificate; `sign` gives a key and a certificate. All lie in `folder`. Raises Missing."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("openssl"):
            raise Missing("openssl: apt-get install openssl")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.ca = folder, folder / "ca.pem"
        (folder / "openssl.cnf").write_text(EXTENSIONS)
        made = [*KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2"]
        self._openssl("req", "-x509", "-config", "openssl.cnf", "-extensions", "authority", *made)

    def sign(self, name: str) -> tuple[Path, Path]:
        """(certificate, key) of `CN=name` on this machine."""
        made = [*KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"]
        self._openssl("req", "-new", "-config", "openssl.cnf", *made)
        by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2"]
        how = ["-extfile", "openssl.cnf", "-extensions", "signed"]
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *by, *how)
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def _openssl(self, *words: str) -> None:
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"openssl {' '.join(words)}: {done.stderr}")
