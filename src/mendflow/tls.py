"""TLS settings, in one place for everything that speaks HTTP: servers, pilots, clients, and servers with each other.

A client trusts a server that shows a certificate of a known CA for its name, or the very certificate that was pinned; a
pinned one may be self-signed, and for another name. A server that has a CA for clients talks to nobody without a
certificate of it. Certificates are read again when their files change: connections that are open stay open."""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

log = logging.getLogger("mendflow.server")

CA_VARIABLE: Final = "MENDFLOW_CA"
CERT_VARIABLE: Final = "MENDFLOW_TLS_CERT"
KEY_VARIABLE: Final = "MENDFLOW_TLS_KEY"
PIN_VARIABLE: Final = "MENDFLOW_TLS_PIN"
PIN_PREFIX: Final = "sha256:"
FILE_PREFIX: Final = "file:"


class BadTlsFile(ValueError):
    """A file of certificates or keys cannot be used."""


class PinMismatch(ssl.SSLError):
    """The server shows another certificate than the one that was pinned."""


class ClientTls(msgspec.Struct, frozen=True):
    """How a client trusts servers, and what it shows them. `ca` is a file with CAs; `cert` and `key` are its own. `pin`
    has certificates, with commas between them: each as `sha256:` and the hash of the certificate, or as `file:` and
    the file that it is in, which is read for each connection."""

    ca: str = ""
    cert: str = ""
    key: str = ""
    pin: str = ""

    def context(self) -> ssl.SSLContext:
        """The context for new connections. Raises BadTlsFile."""
        return _client_context(self, tuple(_stamp(each) for each in (self.ca, self.cert, self.key) if each))

    @property
    def words(self) -> list[str]:
        """The same as options of a pilot."""
        given = {"--tls-ca": self.ca, "--tls-client-cert": self.cert, "--tls-client-key": self.key}
        return [word for pair in ({**given, "--tls-pin": self.pin}).items() if pair[1] for word in pair]


NO_TLS_SETTINGS: Final = ClientTls()
"""The CAs of the system are trusted, and nothing is shown."""


class NewestContext:
    """The context for the next request of somebody who asks again and again, by the files as they are now. While they
    cannot be used, as in the middle of being replaced, it is the one before, and the log says why."""

    def __init__(self, settings: ClientTls) -> None:
        self._settings = settings
        self._last: ssl.SSLContext | None = None
        self._told = ""

    def get(self) -> ssl.SSLContext:
        """Raises BadTlsFile if there has been none yet."""
        try:
            self._last, self._told = self._settings.context(), ""
        except BadTlsFile as error:
            if self._last is None:
                raise
            if self._told != (told := str(error)):
                self._told = told
                log.warning("the certificates before stay in use for requests to others: %s", told)
        return self._last


class ServerTls(msgspec.Struct, frozen=True):
    """What a server shows, and the CAs of the certificates that clients have to show; empty: none."""

    cert: str
    key: str = ""
    client_ca: str = ""


def tls_of_environment() -> ClientTls:
    told = os.environ.get
    return ClientTls(told(CA_VARIABLE, ""), told(CERT_VARIABLE, ""), told(KEY_VARIABLE, ""), told(PIN_VARIABLE, ""))


def or_environment(given: ClientTls) -> ClientTls:
    """What was given, and for the rest what the environment says."""
    usual = tls_of_environment()
    own = given.cert or given.key
    return ClientTls(
        given.ca or usual.ca,
        given.cert if own else usual.cert,
        given.key if own else usual.key,
        given.pin or usual.pin,
    )


def _stamp(path: str) -> tuple[str, int]:
    try:
        return path, os.stat(path).st_mtime_ns
    except OSError as error:
        raise BadTlsFile(f"{path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=16)
def _client_context(settings: ClientTls, _stamps: tuple[tuple[str, int], ...]) -> ssl.SSLContext:
    """Reading the CAs of a system takes longer than a handshake: a context is made once for each state of its files."""
    try:
        context = ssl.create_default_context(cafile=settings.ca or None)
    except (ssl.SSLError, OSError) as error:
        raise BadTlsFile(f"{settings.ca} is no file of CA certificates in PEM: {error}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.cert:
        _load_chain(context, settings.cert, settings.key)
    if settings.pin:
        _pin(context, settings.pin)
    return context


def _load_chain(context: ssl.SSLContext, cert: str, key: str) -> None:
    try:
        context.load_cert_chain(cert, key or None)
    except OSError as error:
        both = f"{cert} and {key}" if key else cert
        raise BadTlsFile(
            f"{both} cannot be used as a certificate and its key, in PEM and without a password: {error}"
        ) from None


# Pins


def pin_of(certificate: bytes) -> str:
    """The pin of a certificate in DER."""
    return PIN_PREFIX + hashlib.sha256(certificate).hexdigest()


def pin_of_file(path: str | Path) -> str:
    """The pin of the first certificate in a PEM file. Raises BadTlsFile."""
    try:
        text = Path(path).read_text(encoding="ascii")
        begin = text.index("-----BEGIN CERTIFICATE-----")
        end = text.index("-----END CERTIFICATE-----") + len("-----END CERTIFICATE-----")
        return pin_of(ssl.PEM_cert_to_DER_cert(text[begin:end]))
    except (OSError, ValueError) as error:
        raise BadTlsFile(f"{path} has no certificate in PEM: {error}") from None


def check_pin(pin: str) -> None:
    """Raises BadTlsFile if it is none."""
    for each in pin.split(","):
        plain = each.strip()
        if plain.startswith(FILE_PREFIX):
            pin_of_file(plain.removeprefix(FILE_PREFIX))
        elif not plain.startswith(PIN_PREFIX) or len(_hex(plain)) != 64 or set(_hex(plain)) - set("0123456789abcdef"):
            raise BadTlsFile(f"{plain[:80]!r} is no pin of a certificate: write sha256: and 64 digits, or file:PATH")


def _hex(pin: str) -> str:
    return pin.strip().removeprefix(PIN_PREFIX).replace(":", "").lower()


def _pin(context: ssl.SSLContext, pins: str) -> None:
    """Let the context trust these certificates, and no other. It is checked where every handshake ends, whoever reads
    and writes."""
    check_pin(pins)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def check(shown: bytes | None) -> None:
        known = {_known_pin(each.strip()) for each in pins.split(",")}
        if shown is None or pin_of(shown) not in known:
            told = pin_of(shown) if shown is not None else "none"
            raise PinMismatch(f"the server shows the certificate {told}, which is not the one that was pinned")

    class PinnedObject(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            check(self.getpeercert(binary_form=True))

    class PinnedSocket(ssl.SSLSocket):
        def do_handshake(self, block: bool = False) -> None:
            super().do_handshake(block)
            check(self.getpeercert(binary_form=True))

    context.sslobject_class = PinnedObject
    context.sslsocket_class = PinnedSocket


def _known_pin(pin: str) -> str:
    if pin.startswith(FILE_PREFIX):
        return pin_of_file(pin.removeprefix(FILE_PREFIX))
    return PIN_PREFIX + _hex(pin)


# The server


class ServerCertificate:
    """The context of a listening server. Raises BadTlsFile if its files cannot be used."""

    def __init__(self, settings: ServerTls) -> None:
        self._settings = settings
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if settings.client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
        self._stamps: list[tuple[str, int]] = []
        self.reload()

    def reload(self) -> None:
        """Read the files again, for connections that are made from now on."""
        given = self._settings
        stamps = [_stamp(each) for each in (given.cert, given.key, given.client_ca) if each]
        # Another context tries first: half a change must not stay in the one that is in use.
        for context in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.context):
            _load_chain(context, given.cert, given.key)
            if given.client_ca:
                try:
                    context.load_verify_locations(given.client_ca)
                except (ssl.SSLError, OSError) as error:
                    raise BadTlsFile(f"{given.client_ca} is no file of CA certificates in PEM: {error}") from None
        self._stamps = stamps

    def reload_if_changed(self) -> bool:
        given = self._settings
        if [_stamp(each) for each in (given.cert, given.key, given.client_ca) if each] == self._stamps:
            return False
        self.reload()
        return True


# What people read


def explain(error: BaseException) -> str:
    """What is wrong with TLS, and what to do; empty if it is something else."""
    found = _causes(error)
    for each in found:
        if isinstance(each, PinMismatch):
            return f"{each.args[-1]}; if it was replaced, give the new pin by --tls-pin or {PIN_VARIABLE}"
        if isinstance(each, BadTlsFile):
            return str(each)
        # Libraries have errors of this kind that only carry the one of the handshake.
        if isinstance(each, ssl.SSLCertVerificationError) and hasattr(each, "verify_message"):
            return _unverified(each)
    told = [_refused(str(each)) for each in found if isinstance(each, ssl.SSLError)]
    return next((each for each in told if each), f"TLS failed: {found[-1]}" if told else "")


CLOSED: Final = (
    "the server ended the connection at once: if it wants a certificate of whoever asks, give one that its"
    f" --tls-client-ca knows, by --tls-client-cert and --tls-client-key, or {CERT_VARIABLE} and {KEY_VARIABLE}"
)
"""Since TLS 1.3 a server looks at the certificate of a client after the client has begun to speak: it hangs up, and
what it says of the reason is often lost."""


def _unverified(error: ssl.SSLCertVerificationError) -> str:
    why = error.verify_message or str(error)
    if "expired" in why:
        return "its certificate has expired: renew it; the server reads the new one by itself"
    if "not yet valid" in why:
        return "its certificate is not valid yet: look at the clocks of both machines"
    if "ismatch" in why or "not valid for" in why:
        return f"its certificate is for another name ({why}): use that name in the address, or --tls-pin"
    return (
        f"its certificate is not of a CA that is known here ({why}): give the CA by --tls-ca or {CA_VARIABLE},"
        f" or the certificate itself by --tls-pin or {PIN_VARIABLE}"
    )


def _refused(text: str) -> str:
    upper = text.upper().replace(" ", "_")
    if "CERTIFICATE_REQUIRED" in upper or "HANDSHAKE_FAILURE" in upper:
        return (
            "the server wants a certificate of whoever asks: give one by --tls-client-cert and --tls-client-key, or"
            f" {CERT_VARIABLE} and {KEY_VARIABLE}"
        )
    if "UNKNOWN_CA" in upper or "BAD_CERTIFICATE" in upper or "CERTIFICATE_UNKNOWN" in upper:
        return "the server does not know the CA of our certificate: its --tls-client-ca has to have it"
    if "CERTIFICATE_EXPIRED" in upper:
        return "our certificate has expired: renew it"
    if "WRONG_VERSION_NUMBER" in upper or "RECORD_LAYER" in upper:
        return "it does not speak TLS: write http:// if it is to be asked without"
    return ""


def _causes(error: BaseException) -> list[Any]:
    """The error and what it came of, without going round."""
    found: list[Any] = []
    waiting: list[Any] = [error]
    while waiting and len(found) < 20:
        each = waiting.pop(0)
        if each is None or any(each is other for other in found):
            continue
        found.append(each)
        waiting += [getattr(each, name, None) for name in ("certificate_error", "os_error", "__cause__", "__context__")]
    return found
