"""Provisioning: the pilot monitor, which knows how many pilots a site should have, and the manager, which gets them."""
