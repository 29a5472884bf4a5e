"""A transparent proxy between the flow manager and the meta-schedulers: it observes all jobs, and has those that fail
mended."""
