"""The routes of the HTTP API. Each handler asks the domain one thing and hands its answer on."""
