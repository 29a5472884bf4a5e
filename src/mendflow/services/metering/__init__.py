"""What is counted while the services work, in plain numbers.

To count is to add to an integer in a place where something happens anyway; nothing is formatted, looked up or locked.
Whatever can be told from the present state is not counted at all but looked at when somebody asks (census.py)."""

from mendflow.services.metering.counts import Counts, Histogram, JobCounts, LedgerCounts, Series, StoreCounts
from mendflow.services.metering.store import MeteredStore, store_name

__all__ = ["Counts", "Histogram", "JobCounts", "LedgerCounts", "MeteredStore", "Series", "StoreCounts", "store_name"]
