"""The record of who did what: entries that are chained, so that a cut or a change in them is seen."""
