"""What a job needs, together under one key, as in other tools."""

import msgspec

from tests.formats.conftest import Complaints, Reader


def test_what_a_job_needs_may_stand_under_resources_too(read: Reader) -> None:  # DU-3 LE-2
    below = read('name: f\njobs: {a: {run: "true", resources: {memory: auto, time: 1 h, cpus: 2}}}\n')
    assert below == read('name: f\njobs: {a: {run: "true", memory: auto, time: 1 h, cpus: 2}}\n')


def test_the_same_need_said_twice_is_refused(complaints: Complaints) -> None:  # DU-3
    [told] = complaints('name: f\njobs: {a: {run: "true", memory: 1 GB, resources: {memory: 2 GB}}}\n')
    assert "`memory` stands beside `resources` already" in told


def test_a_flow_is_encoded_with_the_one_cpu_that_nobody_states(read: Reader) -> None:
    """Versions and earlier results are known by digests of this encoding."""
    flow = read('name: f\njobs: {a: {run: "true"}}\n')
    assert b'"resources":{"cpus":1.0}' in msgspec.json.encode(flow)
