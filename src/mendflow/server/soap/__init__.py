"""SOAP over HTTP, both ways: what comes to flows and ports of this server, and what flows send to partners."""
