"""Partners of flows in BPEL: incoming messages, outgoing calls, style sheets, and the ports of this server."""
