"""The pure part: no IO, no clock, no randomness, no logging, no environment."""
