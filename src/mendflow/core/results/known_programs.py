"""The programs that scripts run: which get data from elsewhere, which start others, and which one a command starts."""

import re
from typing import Final

from mendflow.core.results.outside_paths import is_known_place
from mendflow.core.results.shell_reader import Word
from mendflow.lazy import lazy_pattern

SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
AWK: Final = frozenset({"awk", "gawk", "mawk", "nawk"})
SED: Final = frozenset({"sed", "gsed"})
STARTERS: Final = frozenset(
    {"command", "env", "exec", "ionice", "nice", "nohup", "stdbuf", "sudo", "taskset", "time", "timeout", "xargs"}
    | {"builtin", "setsid", "chronic", "unbuffer", "doas", "coproc"}
)
"""Programs that start the program that is named after them."""

TAKES_SCRIPT: Final = frozenset(
    {"flock", "script", "su", "runuser", "watch", "parallel", "sem", "hyperfine", "entr", "ifne", "faketime"}
)
"""Programs that start others, and may be given a whole command as a text."""

_STARTS_LATER: Final = frozenset(
    {"chrt", "numactl", "prlimit", "strace", "ltrace", "valgrind", "perf", "gdb", "unshare", "nsenter", "chroot"}
    | {"setpriv", "systemd-run", "xvfb-run", "dbus-run-session", "busybox", "toybox", "srun", "mpirun", "mpiexec"}
    | {"conda", "mamba", "micromamba", "pixi", "uv", "poetry", "pdm", "nix", "guix", "docker", "podman", "apptainer"}
    | {"singularity", "firejail", "bwrap", "proxychains", "torsocks", "tini", "dumb-init", "gosu", "rlwrap"}
)
"""Programs that start others after arguments of their own."""

FETCHES: Final = frozenset(
    {"curl", "wget", "aria2c", "ftp", "lftp", "sftp", "ssh", "scp", "rsync", "nc", "ncat", "netcat", "telnet", "git"}
    | {"svn", "hg", "aws", "gsutil", "gcloud", "az", "azcopy", "rclone", "s3cmd", "s5cmd", "mc", "bq", "axel", "http"}
    | {"https", "xh", "lynx", "w3m", "dig", "nslookup", "getent", "ldapsearch"}
    | {"psql", "pg_dump", "pg_dumpall", "mysql", "mysqldump", "mariadb", "mariadb-dump", "sqlcmd", "sqlplus", "bcp"}
    | {"mongosh", "mongo", "mongoexport", "mongodump", "redis-cli", "cqlsh", "clickhouse-client", "influx", "beeline"}
    | {"kubectl", "oc", "helm", "gh", "glab", "dvc", "kaggle", "hf", "huggingface-cli", "synapse", "zenodo_get"}
    | {"prefetch", "fastq-dump", "fasterq-dump", "esearch", "efetch", "ascp", "globus", "gfal-copy"}
    | {"xrdcp", "iget", "hdfs", "hadoop", "smbclient", "yt-dlp", "youtube-dl"}
    | {"apt", "apt-get", "yum", "dnf", "apk", "brew", "snap", "npm", "npx", "yarn", "pnpm", "gem"}
)
"""Programs that get their data from elsewhere, wherever that is named."""

_IMAGES: Final = frozenset({"run", "pull", "create", "build", "exec", "cp", "compose", "buildx", "image", "start"})
_PACKAGES: Final = frozenset({"install", "download", "wheel", "index", "create", "update", "upgrade", "search", "env"})
_PROJECTS: Final = frozenset({"add", "install", "sync", "lock", "pip", "tool", "update", "fetch", "get", "mod", "run"})
FETCHING_SUBCOMMANDS: Final = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), _IMAGES),
    **dict.fromkeys(("apptainer", "singularity"), frozenset({"pull", "build"})),
    **dict.fromkeys(("pip", "pip3", "pipx", "conda", "mamba", "micromamba"), _PACKAGES),
    **dict.fromkeys(("uv", "poetry", "pdm", "pixi", "cargo", "go"), _PROJECTS),
}
"""Programs that get something from elsewhere with some of their commands: an image or a package by a name whose content
changes. An image that is named by its digest does not change."""

_BY_DIGEST: Final = "@sha256:"

_START: Final = STARTERS | TAKES_SCRIPT | _STARTS_LATER
_TOLD_APART: Final = FETCHES | SHELLS | AWK | SED | {"eval", "printenv"}
_SIMPLE_OPTION = lazy_pattern(r"-{1,2}[\w{}%-]*(?:=[\w.]*)?|\d+[smhd]?|\{\}|%|\+")
_ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=.*", re.DOTALL)


def program_of(word: Word) -> str:
    """The name of the program that a word is, if it is found by its name or in a folder of the system."""
    return word.text.rpartition("/")[2] if is_known_place(word.text) else word.text


def started_program_at(words: list[Word]) -> int:
    """The place of the program that is really started. What a starter takes before it is not known of each: the first
    word counts that is one of the programs that matter."""
    first = next((at for at, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word.text)), 0)
    if program_of(words[first]) in _START:
        told = (at for at in range(first + 1, len(words)) if program_of(words[at]) in _TOLD_APART)
        if (found := next(told, 0)) and not words[found].quoted:
            return found
    for at, word in enumerate(words):
        if at and words[at - 1].text in ("-exec", "-execdir"):
            return at
        skipped = program_of(word) in STARTERS or _ASSIGNMENT.fullmatch(word.text) or _is_option(word)
        if not skipped and program_of(words[0]) != "find":
            return at
    return 0


def fetching_subcommand(words: list[Word]) -> str:
    """The program and its command, if a command gets an image or packages; empty otherwise."""
    for at, word in enumerate(words):
        fetching = FETCHING_SUBCOMMANDS.get(program_of(word))
        if fetching is None or (at and not _may_start(words[at - 1])):
            continue
        command = next((each.text for each in words[at + 1 :] if not each.text.startswith("-")), "")
        if command in fetching and not any(_BY_DIGEST in each.text for each in words):
            return f"{program_of(word)} {command}"
    return ""


def _may_start(word: Word) -> bool:
    """Whether a program may stand after this word: a starter, one of its options, an assignment, or Python's `-m`."""
    return program_of(word) in _START or _is_option(word) or _ASSIGNMENT.fullmatch(word.text) is not None


def _is_option(word: Word) -> bool:
    return _SIMPLE_OPTION.fullmatch(word.text) is not None
