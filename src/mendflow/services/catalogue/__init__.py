"""The catalogue: which logical files there are, what they are, and where they lie."""

from mendflow.services.catalogue.catalogue import Catalogue

__all__ = ["Catalogue"]
