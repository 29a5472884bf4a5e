"""The routes of the HTTP API: made from the table of operations. Handlers stand here by hand only for what streams, or
does more than call the domain."""
