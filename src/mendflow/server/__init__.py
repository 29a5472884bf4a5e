"""The HTTP server of a domain, for people, programs and pilots."""
