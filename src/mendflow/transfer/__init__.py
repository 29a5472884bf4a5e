"""Transfers files to and from storage elements: any protocol of fsspec, with uniform errors and atomic results.

A file that is fetched appears only when complete, and its digest is computed from the local disk, not from the network
stream. A file that is published is written under a temporary name, and renamed in one step at the end."""
