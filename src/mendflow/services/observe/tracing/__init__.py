"""Traces: a case, its items and each attempt of each job, as spans.

A span is made when something is over, from documents, and its ids are derived from names alone: of the case, of the
item's serial, of the job and its fence. So no state is needed for a trace to continue after a restart or on another
server, and a span that is exported twice is the same span."""
