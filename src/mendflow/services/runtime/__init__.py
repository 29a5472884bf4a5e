"""One server's life: its services put together, started, stopped, and built anew when the store was away."""
