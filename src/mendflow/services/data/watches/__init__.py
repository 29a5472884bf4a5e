"""Watched folders of storage elements: new files there join data sets."""
