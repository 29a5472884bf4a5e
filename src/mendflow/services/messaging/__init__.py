"""Partners of flows in BPEL: messages in, calls out, style sheets, and the ports of this server."""
