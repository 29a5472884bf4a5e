"""HTTP: the face of a domain to people, programs and pilots."""
