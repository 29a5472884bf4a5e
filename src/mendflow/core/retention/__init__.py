"""Which cases that are over may go, and what has to stay because something that stays refers to it."""
