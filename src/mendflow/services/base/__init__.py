"""What every service stands on: ledger, clock, background tasks, events, and the contracts between services."""
