"""What a hostile job tries. It knows every path and every process that an insider would know."""

import json

VICTIM = """
name: victim
jobs:
  victim:
    run: |
      echo private-to-another > secret.txt
      sleep 3000
"""

PROBE = """
import glob, json, os, signal, subprocess, sys, urllib.error, urllib.request


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode(errors="replace")
    except OSError:
        return ""


def environments():
    return "".join(read(path) for path in glob.glob("/proc/[0-9]*/environ") if path != f"/proc/{os.getpid()}/environ")


def memory_of(pid):
    try:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            for line in read(f"/proc/{pid}/maps").splitlines():
                if " rw-p " in line and "[heap]" in line:
                    begin = int(line.split("-")[0], 16)
                    memory.seek(begin)
                    return len(memory.read(4096)) > 0
    except (OSError, ValueError):
        pass
    return False


def may_signal(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def add_administrator(path):
    try:
        with open(path, "a") as tokens:
            tokens.write("intruder admin " + "0" * 64 + "\\n")
    except OSError:
        pass


def answer_of(url):
    try:
        return urllib.request.urlopen(url, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def attack(target):
    seen = environments() + json.dumps(dict(os.environ))
    work, data = target["work"], target["data"]
    known = [text[::-1] for text in target["secrets"]]  # turned round, so that its own copy is not what it finds
    password = target["password"][::-1]
    own = os.environ["MENDFLOW_JOB"].replace("/", "~")
    files = [*glob.glob(f"{work}/**", recursive=True), *glob.glob(f"{data}/**", recursive=True)]
    guessed = [f"{work}/{name}" for name in ("pilot.json", "servers.json", "lease", "pilot.log", "agent.lock")]
    guessed += [f"{data}/{name}" for name in ("server.json", "store.db", "secrets.key")] + [target["tokens"]]
    text = "".join(read(path) for path in {*files, *guessed} if own not in path)
    private = "".join(read(path) for path in glob.glob(f"{work}/attempts/*/secret.txt") + target["victims"])
    add_administrator(target["tokens"])
    return {
        "token_in_environment": any(token in seen for token in known),
        "password_in_environment": password in seen,
        "secrets_in_files": any(token in text for token in known),
        "files_of_the_pilot_or_server": bool(text),
        "files_of_another_job": "private-to-another" in private,
        "memory_of_the_pilot": memory_of(target["agent"]) or any(memory_of(pid) for pid in target["slots"]),
        "signals_to_the_pilot": may_signal(target["agent"]),
        "signals_to_the_server": may_signal(target["server"]),
        "answer_of_the_server": answer_of(target["url"] + "/api/v1/cases"),
        "visible": os.environ.get("VISIBLE_TO_ALL", ""),
        "passed": os.environ.get("PASSED_ON", ""),
        "home": os.environ.get("HOME", ""),
        "user": os.getuid(),
    }
"""


def shell_flow(name: str, target: dict[str, object], python: str) -> str:
    """A flow whose job is a script, which attacks and leaves a file."""
    ends = 'loot = attack(json.loads(os.environ["TARGET"]))\n'
    ends += 'print("loot=" + json.dumps(loot), file=open(os.environ["MENDFLOW_OUTPUT"], "a"))'
    script = f"cat > probe.py <<'END'\n{PROBE}\n{ends}\nEND\n{python} probe.py\necho made > made.txt\n"
    job = {"run": script, "env": {"TARGET": json.dumps(target)}, "files": {"made": "made.txt"}}
    return json.dumps({"name": name, "defaults": {"retries": 0}, "jobs": {"hostile": job}})


def python_flow(name: str, target: dict[str, object]) -> str:
    """A flow whose job is a function, in a file beside it."""
    job = {"python": "probe.py:attack", "with": {"target": target}}
    return json.dumps({"name": name, "defaults": {"retries": 0}, "jobs": {"hostile": job}})
