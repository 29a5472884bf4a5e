"""How fast it is, beside others, on one machine and in one run: `python -m bench`.

What has no counterpart elsewhere can also be run by itself: `python -m bench.match`, `python -m bench.rules`,
`python -m bench.proxy`, and on stores that are shared `python -m bench.stores`, `python -m bench.servers`."""
