"""The flow manager and the dispatch of its orders: starting, calling, timers, user tasks, staging, cached results."""
