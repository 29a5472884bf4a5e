"""Several servers on one store: who is alive, whose a case is, take-over, and the relay between servers."""
