"""Containers of jobs: the runtime that a pilot has, its images, and the containers that run."""
