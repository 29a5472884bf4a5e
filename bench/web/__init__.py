"""The web app at scale, in a real Chromium: `python -m bench.web [--write]`."""
