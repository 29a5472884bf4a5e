"""Snakemake: shell rules that make files, one run of it for each measurement."""

import importlib.util
import os
import subprocess
import sys

from bench.subject import WORKERS, CaseReference, Kind, answer

MANY = """
rule all:
    input: expand("out/{{number}}", number=range({jobs}))
rule one:
    output: touch("out/{{number}}")
    shell: "true"
"""
CHAIN = """
rule all:
    input: "hop/{jobs}"
rule first:
    output: touch("hop/0")
    shell: "true"
rule hop:
    input: lambda wildcards: f"hop/{{int(wildcards.number) - 1}}"
    output: touch("hop/{{number,[1-9][0-9]*}}")
    shell: "true"
"""


class Snakemake(CaseReference):
    kinds = (Kind.SHELL, Kind.CHAIN)
    limits = {Kind.SHELL: 200}

    def start(self) -> None:
        if importlib.util.find_spec("snakemake") is None:
            raise ModuleNotFoundError("snakemake is not installed", name="snakemake")
        self._runs = 0

    def shell(self, jobs: int) -> None:
        self._make(MANY.format(jobs=jobs))

    def chain(self, jobs: int) -> None:
        self._make(CHAIN.format(jobs=jobs))

    def _make(self, snakefile: str) -> None:
        self._runs += 1
        folder = self.folder / str(self._runs)
        folder.mkdir()
        (folder / "Snakefile").write_text(snakefile)
        subprocess.run(
            [sys.executable, "-m", "snakemake", "-j", str(WORKERS), "--quiet", "all"],
            cwd=folder,
            env={**os.environ, "HOME": str(self.folder)},
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    answer(Snakemake)
