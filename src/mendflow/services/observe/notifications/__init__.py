"""Notifications to clients: when they are made, where they are stored, and how they are delivered."""
