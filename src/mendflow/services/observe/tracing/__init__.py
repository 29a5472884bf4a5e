"""Traces: what became of a case, from its start down to each attempt of each job, as spans.

A span is made when something is over, from what the documents say, and its ids follow from names alone: of the case, of
the item's serial, of the job and its fence. So nobody has to remember anything for a trace to go on after a restart or
at another server, and a span that is told twice is the same span."""
