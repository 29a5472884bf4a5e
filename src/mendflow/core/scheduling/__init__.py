"""The queue, matching, leases, and the life of a job."""
