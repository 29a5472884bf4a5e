"""What is pure: no IO, no clock, no chance, no logging, no environment."""
