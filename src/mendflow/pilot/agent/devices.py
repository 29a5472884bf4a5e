"""The GPUs of a pilot: each job that asks for some gets its own, and no other job of this pilot uses them meanwhile.

The job finds its GPUs in the environment variable that the vendor's libraries read. A pilot that was itself given only
some of a machine's GPUs, by a batch system for instance, finds them in the same variable and assigns only those."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

NVIDIA, AMD = "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"
"""Set only one of these: AMD's libraries read both, and apply one after the other."""

NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
AMD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


def visible_gpus(environment: Mapping[str, str]) -> tuple[str, list[str]]:
    """The variable to use on this machine, and the GPUs that this process may use."""
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
    """Count GPUs only: CPUs are listed as nodes too, but have no GPU id."""
    count = 0
    for node in AMD_NODES.glob("*/gpu_id"):
        try:
            count += node.read_text().strip() not in ("", "0")
        except OSError:
            continue
    return count


class Devices:
    """`count` is how many GPUs the pilot offers, whatever was detected."""

    def __init__(self, count: int, environment: Mapping[str, str] = os.environ) -> None:
        self.variable, names = visible_gpus(environment) if count else (NVIDIA, [])
        if len(names) < count:  # given by the caller
            names = [str(number) for number in range(count)]
        self._all = names[:count]
        self._free = list(self._all)

    def take(self, wanted: int) -> tuple[str, ...] | None:
        """Take `wanted` GPUs, or return None while too few are free. A job that wants more than there are gets all."""
        wanted = min(wanted, len(self._all))
        if wanted > len(self._free):
            return None
        taken, self._free = tuple(self._free[:wanted]), self._free[wanted:]
        return taken

    def claim(self, names: Iterable[str]) -> None:
        """Reserve GPUs of a job that an earlier agent has started."""
        self._free = [name for name in self._free if name not in set(names)]

    def release(self, names: Iterable[str]) -> None:
        back = {*self._free, *names}
        self._free = [name for name in self._all if name in back]
