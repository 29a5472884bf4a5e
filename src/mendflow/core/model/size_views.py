"""What was learned of the sizes of jobs, as people see it."""

import msgspec


class SizeView(msgspec.Struct, frozen=True, kw_only=True):
    """Memory and time of a flow's jobs of one name. `jobs` is how many succeeded in all, `runs` how many of the latest
    are remembered. `asked` is what the last one asked for and `max` its bound (0: none), `used` the most of those
    remembered, `next` what a job with inputs of the usual size would ask for now (0: nothing, because too little is
    known), and `basis` how that is found. `saved_gb_hours` is what those remembered asked for less than their
    bounds, over their time."""

    flow: str
    name: str
    jobs: int
    runs: int
    memory_asked_bytes: int
    memory_max_bytes: int
    memory_used_bytes: int
    memory_next_bytes: int
    memory_basis: str
    wall_asked_ms: int
    wall_max_ms: int
    wall_used_ms: int
    wall_next_ms: int
    wall_basis: str
    saved_gb_hours: float
