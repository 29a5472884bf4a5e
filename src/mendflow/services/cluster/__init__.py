"""Several servers on one store: which are alive, where a case lives, take-over, and the relay between servers."""
