"""The software that a job runs with: an environment made from its description, and modules of the cluster."""

from typing import Final, Literal

import msgspec

from mendflow.core.model.values import FileRef

EnvironmentKind = Literal["requirements", "uv", "conda"]

REQUIREMENTS: Final = "requirements.txt"
PROJECT: Final = "pyproject.toml"
LOCK: Final = "uv.lock"
CONDA: Final = "environment.yaml"
"""What the files of a description are called where an environment is made from them."""


class Software(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`packages` are requirements as pip writes them; `files` the files of the description, by the names above. Before
    the flow is deployed they are `sources` instead: paths beside it. Without any of these there is no environment.
    `python` is the version that the environment has; empty: that of the pilot. `modules` are loaded by the cluster's
    `module load` before."""

    kind: EnvironmentKind = "requirements"
    packages: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    files: dict[str, FileRef] = {}
    python: str = ""
    modules: tuple[str, ...] = ()

    @property
    def has_environment(self) -> bool:
        return bool(self.packages or self.sources or self.files)

    @property
    def shown(self) -> str:
        """In a few words, for people."""
        named = [*self.sources.values(), *(each.name for each in self.files.values()), *self.packages]
        return ", ".join([*named, *(f"module {each}" for each in self.modules)])
