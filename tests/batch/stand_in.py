#!/usr/bin/env python3
"""A batch system in one file, under the names of the commands of LSF, PBS and HTCondor: it starts what it is given as
processes of this machine, and answers in the form that each of the three has in its manual."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
JOBS = HERE / "jobs"


def start(name: str, command: list[str], **variables: str) -> str:
    JOBS.mkdir(exist_ok=True)
    number = str(len(list(JOBS.iterdir())) + 101)
    environment = {**os.environ, **{each: text.replace("#", number) for each, text in variables.items()}}
    process = subprocess.Popen(
        command,
        start_new_session=True,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (JOBS / number).write_text(json.dumps({"name": name, "pid": process.pid}))
    return number


def jobs() -> list[tuple[str, str, int, bool]]:
    found = []
    for file in sorted(JOBS.iterdir()) if JOBS.exists() else []:
        job = json.loads(file.read_text())
        try:
            state = Path(f"/proc/{job['pid']}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            state = "Z"
        found.append((file.name, job["name"], job["pid"], state != "Z"))
    return found


def end(wanted: set[str]) -> bool:
    """End those of these names or numbers; whether there were any."""
    ended = False
    for number, name, pid, lives in jobs():
        if lives and (name in wanted or number in wanted):
            os.killpg(pid, signal.SIGTERM)
            ended = True
    return ended


def written(pattern: str, script: str) -> str:
    found = re.search(pattern, Path(script).read_text(), re.MULTILINE)
    assert found is not None, f"no {pattern} in {script}"
    return found[1]


def bsub(script: str) -> int:
    number = start(written(r'^#BSUB -J "(.*)"$', script), ["/bin/bash", script], LSB_JOBID="#")
    print(f"Job <{number}> is submitted to default queue <normal>.")
    return 0


def bjobs(*words: str) -> int:
    rows = jobs()
    if not rows:
        print("No job found", file=sys.stderr)
        return 255
    for number, name, _, lives in rows:
        print(f"{name}|{number}|{'RUN' if lives else 'DONE'}|-")
    return 0


def bkill(*words: str) -> int:
    if end({words[1]}):
        return 0
    print(f"Job <{words[1]}>: No matching job found", file=sys.stderr)
    return 255


def qsub(script: str) -> int:
    number = start(written(r"^#PBS -N(.*)$", script), ["/bin/bash", script], PBS_JOBID="#.pbs")
    print(f"{number}.pbs")
    return 0


def qstat(*words: str) -> int:
    states = {f"{number}.pbs": ("R" if lives else "F", name) for number, name, _, lives in jobs()}
    told = {id: {"Job_Name": name, "job_state": state, "euser": "me"} for id, (state, name) in states.items()}
    print(json.dumps({"timestamp": 1, "pbs_version": "22", "Jobs": told} if told else {"timestamp": 1}))
    return 0


def qdel(*words: str) -> int:
    return 0 if end({word.removesuffix(".pbs") for word in words}) else 35


def condor_submit(*words: str) -> int:
    told = dict(re.findall(r"^(\S+) = (.*)$", sys.stdin.read(), re.MULTILINE))
    script = told["arguments"].strip("\"'")
    environment = dict(re.findall(r"(\w+)='((?:[^']|'')*)'", told["environment"].strip('"')))
    os.environ.clear()
    os.environ.update(environment)
    number = start(told["+MendflowName"].strip('"'), [told["executable"], script])
    print(f"{number}.0 - {number}.0")
    return 0


def condor_q(*words: str) -> int:
    pattern = re.search(r'regexp\("(.*)", MendflowName\)', words[-1])
    assert pattern is not None
    rows = [
        {"MendflowName": name, "ClusterId": int(number), "JobStatus": 2 if lives else 4}
        for number, name, _, lives in jobs()
        if re.match(pattern[1], name)
    ]
    if rows:
        print(json.dumps(rows))
    return 0


def condor_rm(*words: str) -> int:
    name = re.search(r'== "(.*)"', words[-1])
    if name is not None and end({name[1]}):
        return 0
    print("Couldn't find/remove all jobs matching constraint", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(globals()[Path(sys.argv[0]).name](*sys.argv[1:]))
