"""The data types: flows, jobs, faults, values, and the messages between pilots and servers."""
