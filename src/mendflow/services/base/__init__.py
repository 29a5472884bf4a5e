"""What every service uses: ledger, clock, background tasks, events, and the contracts between services."""
