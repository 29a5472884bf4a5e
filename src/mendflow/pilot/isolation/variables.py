"""Which variables of a pilot's environment its jobs get.

Whoever runs a flow for himself expects his exported variables in his jobs, as with make. A pilot that works for others
has variables of its own, such as passwords of its store or of the cloud: what a job may use of these is listed, and the
rest is left out. A variable that a list forgets is missed by somebody who can say so; a secret that a list of secrets
forgets is lost without a word."""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

import msgspec

EVERYTHING: Final = "*"
"""The pattern of somebody who runs jobs for himself."""

VARIABLE: Final = "MENDFLOW_PASS_ENV"
"""Names and patterns beside those of the options, separated by commas."""

OWN_SECRETS: Final = ("MENDFLOW_TOKEN", "MENDFLOW_STORE", "MENDFLOW_SECRETS_KEY", "MENDFLOW_SMTP_PASSWORD*")
"""What no job gets by a pattern: the token, and the way to the store with its password."""

USUAL: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "HOSTNAME"),
    *("TMPDIR", "TMP", "TEMP", "SCRATCH", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    # batch systems, and what starts parallel programs
    *("SLURM_*", "SLURMD_*", "PBS_*", "LSB_*", "LSF_*", "LS_JOBPID", "SGE_*", "_CONDOR_*", "FLUX_*", "COBALT_*"),
    *("JOB_ID", "JOB_NAME", "NSLOTS", "PE_HOSTFILE", "QUEUE", "PMI_*", "PMIX_*", "OMPI_*", "I_MPI_*", "UCX_*"),
    # devices and threads
    *("CUDA_*", "NVIDIA_*", "ROCR_*", "HIP_*", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK"),
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "NUMEXPR_*", "VECLIB_MAXIMUM_THREADS"),
    # modules and installed software
    *("MODULEPATH", "MODULEPATH_*", "MODULESHOME", "MODULES_*", "LOADEDMODULES", "_LMFILES_*", "LMOD_*", "__LMOD_*"),
    *("_ModuleTable*", "BASH_ENV", "BASH_FUNC_module*", "BASH_FUNC_ml*", "BASH_FUNC__module*", "EBROOT*", "SPACK_*"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "MANPATH", "PKG_CONFIG_PATH", "XDG_DATA_DIRS"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONWARNINGS"),
    *("VIRTUAL_ENV", "CONDA_EXE", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_PYTHON_EXE", "CONDA_SHLVL"),
    *("MAMBA_EXE", "MAMBA_ROOT_PREFIX", "R_LIBS", "R_LIBS_USER", "R_LIBS_SITE", "PERL5LIB", "JAVA_HOME", "JULIA_*"),
    # the way to the network
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    # what runs containers
    *("DOCKER_HOST", "CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "STORAGE_DRIVER"),
    *("APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "SINGULARITY_CACHEDIR", "SINGULARITY_TMPDIR"),
    "MENDFLOW_PILOT",
)
"""What jobs get of a pilot that works for others."""

OF_BUILDERS: Final = ("PIP_*", "UV_*", "CONDA_*", "CONDARC", "MAMBA_*", "NETRC", "MENDFLOW_ENVIRONMENTS")
"""What programs that make software environments get besides: where packages are."""


class PassedVariables(msgspec.Struct, frozen=True, omit_defaults=True):
    """`more` are names, or patterns with `*`, beside the usual ones."""

    more: tuple[str, ...] = ()

    def select(self, environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
        """What of an environment is passed on."""
        patterns = (*USUAL, *self.more, *more)
        exact = {each for each in patterns if EVERYTHING not in each}
        wild = [each for each in patterns if EVERYTHING in each]
        return {name: value for name, value in environment.items() if name in exact or _matches(name, wild)}


_SPECIAL: Final = frozenset("*?[")
"""What is no plain letter of a pattern."""

ALL_VARIABLES: Final = PassedVariables((EVERYTHING,))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return not any(_fits(name, secret) for secret in OWN_SECRETS) and any(_fits(name, each) for each in patterns)


def _fits(name: str, pattern: str) -> bool:
    """Nearly all patterns are a name, or how it begins: for others a regular expression is made, which takes longer
    than all else here."""
    if _SPECIAL.isdisjoint(pattern):
        return name == pattern
    begin = pattern.removesuffix(EVERYTHING)
    return name.startswith(begin) if _SPECIAL.isdisjoint(begin) else fnmatchcase(name, pattern)


def passed_variables(given: Iterable[str], environment: Mapping[str, str] = os.environ) -> PassedVariables:
    """What the options say, each of which may have several names, and what the environment adds. The token is passed to
    nobody, even by its name."""
    texts = [*given, environment.get(VARIABLE, "")]
    names = dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip())
    names.pop("MENDFLOW_TOKEN", None)
    return PassedVariables(tuple(names))
