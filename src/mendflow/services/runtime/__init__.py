"""One server's life: its services are put together, started, stopped, and rebuilt when the store was unreachable."""
