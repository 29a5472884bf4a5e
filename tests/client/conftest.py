"""The client's tests talk to the same servers as the server's."""

from tests.server.conftest import client, domain, http, served, serving

__all__ = ["client", "domain", "http", "served", "serving"]
