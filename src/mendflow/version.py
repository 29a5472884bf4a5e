"""The version of this package. The build reads it here."""

VERSION = "0.1.0"
