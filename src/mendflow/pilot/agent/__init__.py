"""The agent: one exchange with the server at a time; it starts slots and looks after them."""
