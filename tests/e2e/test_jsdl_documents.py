"""Job descriptions in the manner of other grid systems run on a real server and pilot, and stage over a real ssh."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from mendflow.formats import load
from tests.e2e.conftest import World
from tests.formats.jsdl.middleware import DOCUMENTS
from tests.servers.openssh import PASSWORD, USER, ssh_server

WSS = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
CREDENTIAL = f"""<ac:Credential xmlns:ac="http://schemas.ogf.org/hpcp/2007/11/ac"><w:UsernameToken xmlns:w="{WSS}">
  <w:Username>{USER}</w:Username><w:Password>{PASSWORD}</w:Password></w:UsernameToken></ac:Credential>"""
OVER_SSH = f"""<JobDefinition xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl">
  <JobDescription>
    <JobIdentification><JobName>over-ssh</JobName></JobIdentification>
    <Application>
      <POSIXApplication xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix">
        <Executable>/usr/bin/sort</Executable><Input>words</Input><Output>sorted</Output>
      </POSIXApplication>
    </Application>
    <DataStaging><FileName>words</FileName><CreationFlag>overwrite</CreationFlag>
      <Source><URI>scp://127.0.0.1:PORTROOT/words</URI></Source>{CREDENTIAL}</DataStaging>
    <DataStaging><FileName>sorted</FileName><CreationFlag>overwrite</CreationFlag>
      <Target><URI>scp://127.0.0.1:PORTROOT/new/sorted</URI></Target>{CREDENTIAL}</DataStaging>
  </JobDescription>
</JobDefinition>"""
LEFT = {
    "gridsam.txt": "3 given.txt\n",
    "gridway.txt": "7\n",
    "bes.txt": "COLOUR=green",
    "sweep.txt": "2\n4\n6\n8\n",
    "moved.txt": "a\nb\nc\n",
}
"""What each of the documents leaves; of the environment, a line of it."""


def over(world: World, case: str) -> None:
    world.until(lambda: world.client.case(case).status != "running", f"{case} to be over", every=0.2)
    assert world.client.case(case).status == "completed", world.client.case(case)


def test_what_other_systems_write_runs(world: World) -> None:  # FM-2
    world.start_server()
    world.wait_for_server()
    world.start_pilot("one", 4)
    (world.folder / "given.txt").write_text("a\nb\nc\n")
    cases = []
    for number, given in enumerate(each for each in DOCUMENTS if each.output):
        path = world.folder / f"job-{number}.jsdl"
        path.write_text(given.text.replace("FOLDER", str(world.folder)))
        flow = load(path)
        world.client.deploy(flow)
        cases.append(world.client.start(flow.name, {}).id)
    for case in cases:
        over(world, case)
    assert {each.output for each in DOCUMENTS if each.output} == set(LEFT)
    for name, content in LEFT.items():
        found = (world.folder / name).read_text()
        if name == "sweep.txt":
            found = "".join(sorted(found.splitlines(keepends=True)))
        assert content == found or (name == "bes.txt" and content in found.splitlines()), (name, found)


@pytest.mark.openssh
def test_files_come_and_go_over_ssh_with_a_credential_that_is_kept_nowhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-2
    with ssh_server() as there:
        programs = world.folder / "programs"
        programs.mkdir()
        real = shutil.which("sftp")
        (programs / "sftp").write_text(f'#!/bin/sh\nexec {real} -F {there.config} "$@"\n')  # as a user's own settings
        (programs / "sftp").chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        (there.root / "words").write_text("c\na\nb\n")
        world.start_server()
        world.wait_for_server()
        world.start_pilot("one")
        path = world.folder / "over.jsdl"
        path.write_text(OVER_SSH.replace("PORT", str(there.port)).replace("ROOT", str(there.root)))
        world.client.deploy(load(path))
        path.unlink()
        over(world, world.client.start("over-ssh", {}).id)
        assert (there.root / "new" / "sorted").read_text() == "a\nb\nc\n"
        assert f"Accepted password for {USER}" in there.log.read_text()
    kept = [each for each in world.folder.rglob("*") if each.is_file() and _has(each, PASSWORD)]
    assert not kept, kept


def _has(path: Path, secret: str) -> bool:
    return any(text.encode() in path.read_bytes() for text in (secret, "p%40ss%2Fw%C3%B6rd%3A1"))
