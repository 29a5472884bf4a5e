"""The ports that a server itself offers over SOAP, as WSDL files that anybody may import."""

from importlib.resources import files
from typing import Final

PORTS: Final = {"jobs": "urn:mendflow:jobs:1", "proxy": "urn:mendflow:proxy:1"}
"""The target namespace of each, by its name. `mendflow:NAME` is its address in the server that runs a process."""


def port_wsdl(name: str) -> str:
    """The WSDL of a port, as it stands in the package."""
    assert name in PORTS, f"there is no port {name}"
    return files("mendflow").joinpath("formats", "bpel", "ports", f"{name}.wsdl").read_text(encoding="utf-8")
