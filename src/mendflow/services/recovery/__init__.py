"""Exceptions and repairs: rules pick an exlet, its primitives carry the repair out, and the flow never knows."""
