"""A simulator in virtual time around the product's own services and pilots.

Nothing here waits, opens a socket or starts a thread: machines, processes, networks and disks are simulated, their
faults are drawn from a seed, and the same seed gives the same run, event for event."""
