"""A flow over two storage elements, one of them a real S3 server, with pilots that are killed while they stage.

Whatever the catalogue says of a file is so, at every place that it names; and nothing half is left anywhere."""

import hashlib
import os
import random
import time
from pathlib import Path

import pytest

from mendflow.core.model.data import LogicalFile, StorageElement
from mendflow.formats import load
from mendflow.transfer.element import StorageClient
from tests.e2e.conftest import World
from tests.servers import s3

FILES = 6
FLOW = """
name: mass
inputs: {numbers: {type: list}}
jobs:
  make:
    for-each: ${{ inputs.numbers }}
    run: head -c 8000000 /dev/urandom > raw.dat
    files: {raw: raw.dat}
    publish: {raw: {as: "/store/raw/${{ item }}.dat", on: objects}}
    retries: 20
  copy:
    after: make
    for-each: ${{ inputs.numbers }}
    stage: {raw: "lfn:/store/raw/${{ item }}.dat"}
    to: disk
  read:
    after: copy
    for-each: ${{ inputs.numbers }}
    run: sha256sum < in.dat | cut -c1-64 > sum
    inputs: {in.dat: "lfn:/store/raw/${{ item }}.dat"}
    link-inputs: true
    files: {sum: sum}
    retries: 20
"""


@pytest.mark.law
def test_files_are_right_wherever_the_catalogue_says_though_pilots_are_killed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FM-6, PJ-7, JS-7
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "disk").mkdir()
    objects = s3.server().element("objects")
    disk = StorageElement(name="disk", url=(tmp_path / "disk").as_uri())
    world.start_server()
    world.wait_for_server()
    for element in (objects, disk):
        world.client.put_element(element)
    (tmp_path / "mass.yaml").write_text(FLOW)
    world.client.deploy(load(tmp_path / "mass.yaml"))
    case = world.client.start("mass", {"numbers": list(range(FILES))}).id
    torment(world, case)
    assert world.client.case(case).status == "completed", world.client.case(case)
    files = [world.client.datum(f"/store/raw/{number}.dat") for number in range(FILES)]
    for file in files:
        assert {replica.element for replica in file.replicas} == {"objects", "disk"}
        for element in (objects, disk):
            assert content_of(element, file, tmp_path) == file.sha256
    for storage in (objects, disk):
        assert len(StorageClient(storage).list()) == FILES
    assert not [name for _, _, names in os.walk(tmp_path / "disk") for name in names if name.startswith(".")]


def torment(world: World, case: str) -> None:
    """Kill one of two pilots again and again, whole or only its agent, until the case is over."""
    dice = random.Random(11)
    names = ("one", "two")
    for name in names:
        world.start_pilot(name)
    kills, end = 0, time.monotonic() + 150
    while world.client.case(case).status == "running" and time.monotonic() < end:
        time.sleep(dice.uniform(0.3, 1.5))
        if kills < 8:
            victim = dice.choice(names)
            world.kill_pilot(victim, whole=dice.random() < 0.3)
            world.start_pilot(victim)
            kills += 1
    assert kills >= 3


def content_of(element: StorageElement, file: LogicalFile, folder: Path) -> str:
    target = folder / "looked at"
    StorageClient(element).fetch(element.url + file.name, str(target))
    return hashlib.sha256(target.read_bytes()).hexdigest()
