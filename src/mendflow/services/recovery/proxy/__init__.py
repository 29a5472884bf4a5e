"""A transparent proxy between the flow manager and whoever executes jobs: it listens, and mends what fails."""
