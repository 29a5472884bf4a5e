"""What a server does: cases, scheduling, recovery, messaging, data, several servers, and what people ask for."""
