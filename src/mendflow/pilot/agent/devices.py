"""The GPUs of a pilot, by name: each job that asks for some gets its own, and no other job of this pilot gets those
while it runs.

Which a job may use is told to it in the variable that the vendor's libraries heed. A pilot that was itself given some
of a machine's GPUs, by a batch system for instance, finds them named in the same variable and hands out only those."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

NVIDIA, AMD = "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
"""Only one of them is ever set: AMD's libraries heed both, one after the other."""

NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
AMD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


def visible(environment: Mapping[str, str]) -> tuple[str, list[str]]:
    """The variable that counts on this machine, and the names of the GPUs that this process may use."""
    for variable in (NVIDIA, AMD):
        if variable in environment:
            return variable, [name for name in environment[variable].split(",") if name.strip()]
    if count := _nvidia_gpus():
        return NVIDIA, [str(number) for number in range(count)]
    if count := _amd_gpus():
        return AMD, [str(number) for number in range(count)]
    return NVIDIA, []


def _nvidia_gpus() -> int:
    try:
        return len(os.listdir(NVIDIA_GPUS))
    except OSError:
        return 0


def _amd_gpus() -> int:
    """Processors are nodes too, and have no number as a GPU."""
    count = 0
    for node in AMD_NODES.glob("*/gpu_id"):
        try:
            count += node.read_text().strip() not in ("", "0")
        except OSError:
            continue
    return count


class Devices:
    """`count` is how many the pilot offers, whatever was found."""

    def __init__(self, count: int, environment: Mapping[str, str] = os.environ) -> None:
        self.variable, names = visible(environment) if count else (NVIDIA, [])
        if len(names) < count:  # somebody knows better
            names = [str(number) for number in range(count)]
        self._all = names[:count]
        self._free = list(self._all)

    def take(self, wanted: int) -> tuple[str, ...] | None:
        """That many, or None while too few are free. Who wants more than there are gets all."""
        wanted = min(wanted, len(self._all))
        if wanted > len(self._free):
            return None
        taken, self._free = tuple(self._free[:wanted]), self._free[wanted:]
        return taken

    def claim(self, names: Iterable[str]) -> None:
        """A job that was started before this agent has these."""
        self._free = [name for name in self._free if name not in set(names)]

    def release(self, names: Iterable[str]) -> None:
        back = {*self._free, *names}
        self._free = [name for name in self._all if name in back]
