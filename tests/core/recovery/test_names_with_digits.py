"""Digits of names stay, so that two tools are two causes; numbers, ids and counters go, so that one cause is one."""

import time

import pytest

from mendflow.core.recovery.names_with_digits import without_numbers
from mendflow.core.recovery.signature import normalize_message


@pytest.mark.parametrize(
    "name",
    [
        "bowtie2",
        "minimap2",
        "gatk4",
        "hg38",
        "hg38.fa",
        "GRCh38",
        "mm10",
        "python3",
        "python3.11",
        "bwa-mem2",
        "bwa-mem2.avx2",
        "samtools-1.19",
        "bowtie2-2.5.1",
        "ubuntu-22.04",
        "GLIBC_2.34",
        "libcudart.so.11.0",
        "HTTP/1.1",
        "sha256sum",
        "sha256",
        "sha-256",
        "md5",
        "utf-8",
        "x86_64",
        "base64",
        "float64",
        "int128",
        "cp1252",
        "v2",
        "v1.19",
        "CUDA12",
        "k8s",
        "T2T",
    ],
)
def test_the_digits_of_a_name_stay(name: str) -> None:
    assert normalize_message(f"{name} failed") == f"{name} failed"
    assert normalize_message(f"command not found: {name}") == f"command not found: {name}"


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("row 17 of 41,000", "row <n> of <n>"),
        ("took 1.5 GB of 4GB, -3 and 1e-5", "took <n> GB of <n>GB, <n> and <n>"),
        ("pid 4711 ended with 3.", "pid <n> ended with <n>."),
        ("node12 and node-7, gpu0", "node<n> and node-<n>, gpu<n>"),
        ("node-1234", "node-<n>"),
        ("big_chunk3, chunk_12, chunk-1.5", "big_chunk<n>, chunk_<n>, chunk-<n>"),
        ("out/part7.bam", "out/part<n>.bam"),
        ("chr12 of sample3.bam", "chr<n> of sample<n>.bam"),
        ("SRR1234567 and NA12878", "SRR<n> and NA<n>"),
        ("x1, s3, n=5", "x<n>, s<n>, n=<n>"),
        ("align-7f3k/12~2 on p-7f3k", "<id> on <id>"),
        ("case night-1a2b3c, night-abcd12, night-123456", "case <id>, <id>, <id>"),
        ("worker-node07.cluster", "worker-node<n>.cluster"),
        ("gcc-12 and gcc-9.", "gcc-<n> and gcc-<n>."),
        ("align[4] of rows[17]", "align[<n>] of rows[<n>]"),
        ("1000genomes", "<n>genomes"),
    ],
)
def test_what_counts_something_goes(message: str, cause: str) -> None:
    assert normalize_message(message) == cause


@pytest.mark.parametrize(
    ("one", "other"),
    [("bowtie2", "bowtie"), ("samtools-1.19", "bcftools-1.19"), ("hg38", "hg19"), ("python3", "python2")],
)
def test_two_tools_are_two_causes(one: str, other: str) -> None:
    told = "{} ended after 3 s (exit code 1)"
    assert normalize_message(told.format(one)) != normalize_message(told.format(other))
    assert normalize_message(told.format(one)) == normalize_message(told.format(one).replace("3 s", "41 s"))


def test_a_cause_is_the_cause_of_itself() -> None:
    """Groups that are stored, and messages that were made without numbers before, are read as they are."""
    for stored in ("<id> on bowtie<n>: row <n> of <name>", "bowtie2 at <path>, <n>GB, node<n>.cluster", "gcc-<n>"):
        assert normalize_message(stored) == stored


@pytest.mark.parametrize("unit", ["a", "a1", "a-", "a-1", "a_", "1.", "v1.", "ab1.", ".so.1", "_", "a.b-"])
def test_a_message_without_end_is_looked_at_in_no_time(unit: str) -> None:
    text = (unit * 2_000)[:2_000]
    began = time.process_time()
    without_numbers(f"{text} {text}!")
    assert time.process_time() - began < 1
