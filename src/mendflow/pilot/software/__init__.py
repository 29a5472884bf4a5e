"""The software of jobs: environments that are made once on a host, and modules of the cluster."""
