"""Peers: other systems that run jobs. None of them has to be installed; `bench/setup_peers.py` installs them."""
