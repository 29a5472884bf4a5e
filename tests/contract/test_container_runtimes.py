"""What the command lines of apptainer, podman and docker must have in common, whatever their words for it."""

from collections.abc import Mapping
from typing import Any

import pytest

from mendflow.pilot.containers.command_lines import (
    CommandLine,
    JobProcess,
    image_line,
    pull_line,
    remove_line,
    run_line,
)
from mendflow.pilot.containers.start import ContainerStart

FOLDER = "/pilot/attempts/case-1~a.1"
WORDS = ["/bin/sh", "-c", "echo $$", "mendflow", FOLDER]


class ContainerRuntimeContract:
    """The expectations that hold for each runtime; subclasses say in which words."""

    kind: str
    image = "0123abcd"

    def line(
        self, *, env: Mapping[str, str] | None = None, devices: str = "", uid: int = 1000, **more: Any
    ) -> CommandLine:
        start = ContainerStart(
            self.kind, (f"/usr/bin/{self.kind}", "--own"), self.image, "sha256:0123", "/notes", **more
        )
        job = JobProcess(WORDS, FOLDER, [f"{FOLDER}.output"], env or {}, devices, uid, uid, (uid, 20))
        return run_line(start, job, name="mendflow-1", labels={"pilot": "p", "job": "case-1/a", "attempt": "1"})

    def binds(self, words: list[str]) -> list[tuple[str, str, bool]]:
        """What is mounted: source, target, whether it may only be read."""
        raise AssertionError("each runtime says it in its own words")

    def inside(self, line: CommandLine) -> dict[str, str]:
        """The variables that the job sees."""
        raise AssertionError("each runtime says it in its own words")

    def test_the_command_stands_behind_the_image_and_the_programs_own_words_first(self) -> None:
        words = self.line().words
        assert words[:2] == [f"/usr/bin/{self.kind}", "--own"]
        behind = words[words.index(self.image) + 1 :]
        assert behind in (WORDS, WORDS[1:]) and "/bin/sh" in words

    def test_the_pilots_and_the_jobs_options_stand_before_the_image(self) -> None:
        words = self.line(extra=("--pilots",), options=("--jobs", "value")).words
        assert words.index("--pilots") < words.index("--jobs") < words.index("value") < words.index(self.image)

    def test_the_folder_is_at_the_same_path_and_is_where_the_job_begins(self) -> None:
        words = self.line().words
        own = {(FOLDER, FOLDER, False), (f"{FOLDER}.output", f"{FOLDER}.output", False)}
        assert {*self.binds(words)} == own, "nothing of other jobs is there"
        assert FOLDER in words[: words.index(self.image)]

    def test_mounts_are_read_only_where_asked(self) -> None:
        words = self.line(mounts=(("/data", "/in", True), ("/scratch", "/scratch", False))).words
        assert {("/data", "/in", True), ("/scratch", "/scratch", False)} <= {*self.binds(words)}

    def test_the_job_sees_its_variables_and_no_value_is_in_the_list_of_processes(self) -> None:
        names = "TOKEN_OF_MINE GOOGLE_API_KEY GOPATH DOCKER_AUTH_CONFIG CONTAINER_PASSWORD REGISTRY_AUTH NO_WAY UID a-b"
        given = {name: f"s3cret of {name}\nwith lines" for name in names.split()}
        line = self.line(env=given)
        assert self.inside(line) == given
        assert not any("s3cret" in word for word in line.words)

    def test_variables_that_the_runtime_heeds_reach_the_job_and_not_the_runtime(self) -> None:
        given = {"PATH": "/opt/tools/bin", "LD_PRELOAD": "/evil.so", "XDG_RUNTIME_DIR": "/nowhere", "DOCKER_HOST": "x"}
        line = self.line(env=given)
        assert self.inside(line) == given
        assert not given.keys() & line.env.keys()

    def test_without_gpus_no_device_is_asked_for(self) -> None:
        assert not {"--nv", "--rocm", "--gpus"} & {*self.line().words}
        assert not any(word.startswith("--device") for word in self.line().words)

    def test_the_network_is_the_machines_unless_another_is_asked_for(self) -> None:
        assert "none" in self.network(self.line(network="none").words)
        assert self.network(self.line().words) <= {"host"} and self.network(self.line(network="host").words) <= {"host"}

    def network(self, words: list[str]) -> set[str]:
        """The networks that are named, in either spelling."""
        apart = {words[place + 1] for place, word in enumerate(words) if word == "--network"}
        return apart | {word.removeprefix("--network=") for word in words if word.startswith("--network=")}


class TestApptainer(ContainerRuntimeContract):
    kind = "apptainer"
    image = "/cache/images/ab.sif"

    def binds(self, words: list[str]) -> list[tuple[str, str, bool]]:
        given = [words[place + 1].split(":") for place, word in enumerate(words) if word == "--bind"]
        return [(parts[0], parts[1], parts[2:] == ["ro"]) for parts in given]

    def inside(self, line: CommandLine) -> dict[str, str]:
        prefix = "APPTAINERENV_"
        assert "--cleanenv" in line.words
        return {name.removeprefix(prefix): value for name, value in line.env.items() if name.startswith(prefix)}

    def test_gpus_are_those_of_the_vendor(self) -> None:
        assert "--nv" in self.line(env={"CUDA_VISIBLE_DEVICES": "2,3"}, devices="2,3").words
        assert "--rocm" in self.line(env={"ROCR_VISIBLE_DEVICES": "0"}, devices="0").words
        line = self.line(env={"CUDA_VISIBLE_DEVICES": "2,3"}, devices="2,3")
        assert self.inside(line)["CUDA_VISIBLE_DEVICES"] == "2,3", "all devices are there, counted as outside"

    def test_the_home_folder_is_the_jobs(self) -> None:
        words = self.line().words
        assert words[words.index("--home") + 1] == FOLDER == words[words.index("--pwd") + 1]

    def test_an_image_is_fetched_to_a_file_from_where_its_name_says(self) -> None:
        command = ("apptainer",)
        assert pull_line(self.kind, command, "ubuntu:24.04", "/c/x.sif")[-2:] == ["/c/x.sif", "docker://ubuntu:24.04"]
        assert pull_line(self.kind, command, "docker://q.io/t:1", "/c/x.sif")[-1] == "docker://q.io/t:1"
        assert pull_line(self.kind, command, "library://a/b/c:1", "/c/x.sif")[-1] == "library://a/b/c:1"

    def test_nothing_is_left_to_be_removed(self) -> None:
        assert remove_line(self.kind, ("apptainer",), "mendflow-1") == []


class OciContract(ContainerRuntimeContract):
    """What podman and docker share."""

    def binds(self, words: list[str]) -> list[tuple[str, str, bool]]:
        found = []
        for word in words:
            if word.startswith("--mount=type=bind,"):
                parts = dict(part.partition("=")[::2] for part in word.split(",")[1:])
                found.append((parts["source"], parts["target"], "readonly" in parts))
        return found

    def inside(self, line: CommandLine) -> dict[str, str]:
        by_name = [word.removeprefix("--env=") for word in line.words if word.startswith("--env=")]
        return {**line.inside, **{name: line.env[name] for name in by_name}}

    def test_the_runtime_is_told_no_variable_that_a_shell_can_set_but_the_pilots_tag(self) -> None:
        line = self.line(env={"MENDFLOW_PILOT": "p", "TOKEN": "s3cret", "a-b": "1"})
        assert line.env == {"MENDFLOW_PILOT": "p", "a-b": "1"} and line.inside == {"TOKEN": "s3cret"}

    def test_it_shares_processes_memory_and_network_of_the_machine_and_is_removed_when_it_ends(self) -> None:
        words = self.line().words
        assert {"--rm", "--pid=host", "--ipc=host", "--network=host", "--pull=never", "--stop-timeout=0"} <= {*words}
        assert "--security-opt=no-new-privileges" in words

    def test_it_is_named_and_labelled_by_its_attempt(self) -> None:
        words = self.line().words
        assert words[words.index("--name") + 1] == "mendflow-1"
        assert {"--label=mendflow.pilot=p", "--label=mendflow.job=case-1/a", "--label=mendflow.attempt=1"} <= {*words}

    def test_files_belong_to_the_pilots_user(self) -> None:
        assert "--user=1000:1000" in self.line().words and "--user=0:0" in self.line(uid=0).words

    def test_gpus_of_amd_are_devices_of_the_kernel(self) -> None:
        words = self.line(env={"ROCR_VISIBLE_DEVICES": "1"}, devices="1").words
        assert {"--device=/dev/kfd", "--device=/dev/dri"} <= {*words}

    def test_gpus_are_counted_from_zero_inside_and_kept_where_they_have_names(self) -> None:
        line = self.line(env={"CUDA_VISIBLE_DEVICES": "2,3"}, devices="2,3")
        assert self.inside(line)["CUDA_VISIBLE_DEVICES"] == "0,1"
        line = self.line(env={"CUDA_VISIBLE_DEVICES": "GPU-ab"}, devices="GPU-ab")
        assert self.inside(line)["CUDA_VISIBLE_DEVICES"] == "GPU-ab"

    def test_an_image_is_looked_for_and_fetched_by_its_name(self) -> None:
        look = image_line(self.kind, (self.kind,), "docker://ubuntu:24.04")
        assert look == [self.kind, "image", "inspect", "--format", "{{.Id}}", "ubuntu:24.04"]
        assert pull_line(self.kind, (self.kind,), "docker://ubuntu:24.04")[-1] == "ubuntu:24.04"

    def test_a_container_is_removed_by_force(self) -> None:
        words = remove_line(self.kind, (self.kind,), "mendflow-1")
        assert words[:3] == [self.kind, "rm", "--force"] and words[-1] == "mendflow-1"


class TestPodman(OciContract):
    kind = "podman"

    def test_an_ordinary_user_keeps_its_number(self) -> None:
        assert "--userns=keep-id" in self.line().words and "--userns=keep-id" not in self.line(uid=0).words

    def test_gpus_of_nvidia_are_devices_by_name(self) -> None:
        words = self.line(env={"CUDA_VISIBLE_DEVICES": "2,3"}, devices="2,3").words
        assert {"--device=nvidia.com/gpu=2", "--device=nvidia.com/gpu=3"} <= {*words}


class TestDocker(OciContract):
    kind = "docker"

    def test_groups_of_the_user_are_kept(self) -> None:
        words = self.line().words
        assert "--group-add=20" in words and "--group-add=1000" not in words

    def test_gpus_of_nvidia_are_given_by_number(self) -> None:
        words = self.line(env={"CUDA_VISIBLE_DEVICES": "2,3"}, devices="2,3").words
        assert words[words.index("--gpus") + 1] == '"device=2,3"'


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_an_image_of_apptainer_is_no_image_of_the_others(kind: str) -> None:
    assert image_line(kind, (kind,), "a/b:1")[-1] == "a/b:1"
