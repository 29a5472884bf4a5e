"""The routes of the HTTP API. Each handler calls one operation of the domain and returns its answer."""
