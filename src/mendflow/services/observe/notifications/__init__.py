"""Notifications to clients: what they are told, where that is noted, and how it is delivered."""
