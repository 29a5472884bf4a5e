"""The programs of the example of variant calling: bwa, samtools and bcftools, of Debian's packages."""

import shutil

PROGRAMS = ("bwa", "samtools", "bcftools")


def lacking() -> str:
    """Why the example cannot run on this machine; empty if it can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"{', '.join(missing)} (apt-get install {' '.join(PROGRAMS)})" if missing else ""
