"""Names of images, mounts and what is wrong with them."""

import pytest

from mendflow.core.model.containers import (
    JobContainer,
    Mount,
    container_flaws,
    image_flaw,
    is_fixed,
    mount_of,
    reference_of,
    runtimes_for,
)


@pytest.mark.parametrize(
    "image",
    [
        *("ubuntu", "ubuntu:24.04", "docker://ubuntu:24.04", "quay.io/biocontainers/bwa:0.7.17--h5bf99c6_8"),
        *("localhost:5000/a/b_c.d:1", "a/b@sha256:" + 64 * "a", "library://sylabs/examples/lolcow:latest"),
        *("/data/tools.sif", "oras://ghcr.io/a/b:1", "sha256:" + 64 * "0", "ghcr.io/A/b:1"),
    ],
)
def test_images_are_named_as_users_of_docker_and_apptainer_name_them(image: str) -> None:  # DU-5
    assert image_flaw(image) == ""


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("", "an image has a name"),
        (" ubuntu", "an image has a name"),
        ("tools.sif", "write its path from / on"),
        ("https://x/y", "`https://` is no place"),
        ("a b", "not the name of an image"),
        ("--privileged", "not the name of an image"),
        ("ubuntu:24.04:1", "not the name of an image"),
        ("a\nb", "not printable"),
        (2000 * "a", "too long"),
    ],
)
def test_what_is_no_image_is_refused(image: str, said: str) -> None:
    assert said in image_flaw(image)


@pytest.mark.parametrize(
    ("text", "mount"),
    [
        ("/data", Mount("/data", "/data", False)),
        ("/data:/in", Mount("/data", "/in", False)),
        ("/data:/in:ro", Mount("/data", "/in", True)),
        ("/data::ro", Mount("/data", "/data", True)),
    ],
)
def test_a_mount_is_a_source_a_target_and_a_mode(text: str, mount: Mount) -> None:
    assert mount_of(text) == mount and not [*container_flaws(JobContainer(image="a:1", mounts=(text,)))]


@pytest.mark.parametrize("text", ["data", "/data/../etc", "/a:b", "/a:/b:rx", "/a:/b:ro:z", "/a,b", "/a:/", ""])
def test_what_is_no_mount_is_refused(text: str) -> None:
    assert len([*container_flaws(JobContainer(image="a:1", mounts=(text,)))]) == 1


def test_what_an_expression_gives_is_judged_later() -> None:
    container = JobContainer(image="${{ inputs.image }}", mounts=("${{ inputs.data }}",), network="${{ inputs.n }}")
    assert [*container_flaws(container)] == []


def test_files_of_apptainer_go_to_pilots_that_have_it() -> None:  # DU-5
    assert runtimes_for("/data/a.sif") == runtimes_for("library://a/b:1") == ("apptainer",)
    assert runtimes_for("ubuntu:24.04") == runtimes_for("docker://x.sif/a:1") == ("apptainer", "podman", "docker")
    assert reference_of("docker://ubuntu:24.04") == "ubuntu:24.04"


@pytest.mark.parametrize(
    ("image", "fixed"),
    [
        ("ubuntu", False),
        ("ubuntu:latest", False),
        ("localhost:5000/ubuntu", False),
        ("ubuntu:24.04", True),
        ("localhost:5000/ubuntu:1", True),
        ("ubuntu@sha256:" + 64 * "a", True),
        ("/data/a.sif", True),
    ],
)
def test_a_name_says_which_version_it_is_or_not(image: str, fixed: bool) -> None:
    assert is_fixed(image) is fixed
