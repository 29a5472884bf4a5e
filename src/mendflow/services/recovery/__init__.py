"""Exceptions and repairs: rules conclude an exlet, its primitives carry the repair out, and the flow does not
notice."""
