"""Certificates for tests, made by openssl in a moment: a CA, and what it signs."""

import subprocess
from pathlib import Path


class Authority:
    """A CA in a folder. `cert` is its certificate."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.cert, self._key = folder / f"{name}.pem", folder / f"{name}.key"
        to: list[str | Path] = ["-keyout", self._key, "-out", self.cert]
        _openssl("req", "-x509", *_NEW_KEY, *to, "-days", "2", "-subj", f"/CN={name}")

    def sign(self, name: str, *, host: str = "localhost", expired: bool = False) -> tuple[Path, Path]:
        """A certificate for a host and for 127.0.0.1, and its key."""
        cert, key, request = (self._folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        names = self._folder / f"{name}.ext"
        names.write_text(f"subjectAltName=DNS:{host}" + (",IP:127.0.0.1" if host == "localhost" else "") + "\n")
        dates = ["-days", "-1" if expired else "2"]
        given: list[str | Path] = [
            "-in",
            request,
            "-CA",
            self.cert,
            "-CAkey",
            self._key,
            "-CAcreateserial",
            "-extfile",
            names,
        ]
        _openssl("x509", "-req", *given, "-out", cert, *dates)
        return cert, key


def self_signed(folder: Path, name: str = "own") -> tuple[Path, Path]:
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    _openssl("req", "-x509", *_NEW_KEY, "-keyout", key, "-out", cert, "-days", "2", "-subj", f"/CN={name}")
    return cert, key


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
