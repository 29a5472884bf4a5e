"""The pure part of recovery: what a fault means, the conversation of a job, the patterns, and how a job changes when it
is resubmitted."""
