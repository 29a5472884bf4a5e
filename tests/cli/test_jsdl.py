"""`mendflow run`, `check` and the rest with job descriptions, with a real pilot and real programs."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.formats.jsdl.documents import document, posix, program, resources, staging
from tests.formats.jsdl.test_conformance import GOOD, documents
from tests.formats.jsdl.test_sweeps import assign, integers, sweep, swept, values


@pytest.mark.full
def test_a_job_description_runs_like_any_flow(shell: Shell) -> None:  # FM-2
    shell.write("tool", '#!/bin/sh\necho "$GREETING, $1"; cat; echo aside >&2; ulimit -c\n')
    shell.write("words.txt", "from a file\n")
    system = "<OperatingSystemType><OperatingSystemName>LINUX</OperatingSystemName></OperatingSystemType>"
    shell.write(
        "greet.jsdl",
        document(
            posix(
                "<Executable>bin/tool</Executable><Argument>dear world</Argument><Input>words.txt</Input>",
                "<Output>out.txt</Output><Error>err.txt</Error><WorkingDirectory>w</WorkingDirectory>",
                '<Environment name="GREETING">hello</Environment><WallTimeLimit>60</WallTimeLimit>',
                "<CoreDumpLimit>0</CoreDumpLimit>",
            ),
            resources(f"<OperatingSystem>{system}</OperatingSystem>"),
            staging("bin/tool", source="tool"),
            staging("words.txt", source=(shell.folder / "words.txt").as_uri()),
            staging("out.txt", target=(shell.folder / "there" / "out.txt").as_uri()),
        ),
    )
    assert "1 flow, no problems" in shell.ok("check", "greet.jsdl")
    ran = shell.json("run", "greet.jsdl", "--quiet")
    assert ran["status"] == "completed"
    assert (shell.folder / "there" / "out.txt").read_text() == "hello, dear world\nfrom a file\n0\n"
    [error] = (shell.folder / "outputs").glob("*/err*")
    assert error.read_text() == "aside\n"


@pytest.mark.full
def test_a_sweep_of_two_dimensions_runs_a_job_for_every_combination(shell: Shell) -> None:  # FM-2
    target = (shell.folder / "there" / "X").as_uri()
    described = program("/bin/echo", "a", "b", more="<Output>o</Output>") + staging("o", target=target)
    place = f"substring(//j:Target/j:URI, {len(target)})"
    shell.write(
        "sweep.jsdl",
        swept(
            sweep(
                assign("//p:Argument[1]", values("one", "two")),
                sweep(
                    assign("//p:Argument[2]", '<f:LoopDouble start="0.5" end="1.5" step="0.5"/>'),
                    sweep(assign(place, values("p", "q"))),
                ),
            ),
            described=described,
        ),
    )
    refused = shell("check", "sweep.jsdl")
    assert "jobs 1 and 3 of the sweep write to the same <Target>" in refused.stdout + refused.stderr
    shell.write(
        "sweep.jsdl",
        swept(
            sweep(assign("//p:Argument[1]", values("one", "two")), sweep(assign("//p:Argument[2]", integers(1, 3)))),
            described=program("/bin/echo", "a", "b", more="<Output>o</Output>"),
        ),
    )
    ran = shell.json("run", "sweep.jsdl", "--quiet")
    assert ran["status"] == "completed" and len(ran["outputs"]["output"]) == 6
    written = sorted(each.read_text() for each in (shell.folder / "outputs").glob("*/**/*") if each.is_file())
    assert written == [f"{word} {n}\n" for word in ("one", "two") for n in (1, 2, 3)]


def test_a_program_that_is_not_there_fails_its_job_with_the_reason(shell: Shell) -> None:  # FM-12
    shell.write("missing.jsdl", document(program("no-such-program")))
    done = shell("run", "missing.jsdl", "--quiet")
    assert done.returncode == 1 and "a command is not found" in done.stdout


def test_what_cannot_be_honoured_is_shown_where_it_stands(shell: Shell) -> None:  # FM-2
    shell.write("job.jsdl", document(program("a", more="<UserName>root</UserName>")))
    done = shell("run", "job.jsdl")
    assert done.returncode == 2 and "job.jsdl:2: <UserName> cannot be honoured" in done.stderr


@pytest.mark.full
def test_a_file_that_must_not_be_overwritten_is_left_alone(shell: Shell) -> None:  # FM-2
    shell.write("precious", "old")
    target = (shell.folder / "precious").as_uri()
    shell.write("job.jsdl", document(program("/bin/echo", "new", more="<Output>o</Output>"),
                                  staging("o", flag="dontOverwrite", target=target)))  # fmt: skip
    assert shell("run", "job.jsdl", "--quiet").returncode == 1
    assert (shell.folder / "precious").read_text() == "old"


@pytest.mark.full
def test_documents_of_others_run_where_their_programs_are(shell: Shell) -> None:  # FM-2
    """What they read from elsewhere, and write there, lies in a folder here instead."""
    ran = 0
    for path in documents():
        text = path.read_text()
        program = re.search(r"<Executable>\s*(/\S+?)\s*</Executable>", text)
        if path.name not in GOOD or program is None or not Path(program[1]).exists() or "5</Argument>" in text:
            continue
        shell.write("given", "given\n")
        text = re.sub(
            r"<Source>.*?</Source>", f"<Source><URI>file://{shell.folder}/given</URI></Source>", text, flags=re.S
        )
        target = f"<Target><URI>file://{shell.folder}/taken/{path.stem}</URI></Target>"
        shell.write(path.name, re.sub(r"<Target>.*?</Target>", target, text, flags=re.S))
        done = shell("run", path.name, "--quiet")
        several = " " in "".join(re.findall(r"<Argument>(\S+ \S+/\S+)</Argument>", text))  # in one argument
        assert (done.returncode == 0) is not several, f"{path.name}: {done.stdout}{done.stderr}"
        assert several or "<Target>" not in text or (shell.folder / "taken" / path.stem).read_text()
        ran += 1
    assert ran > 2 or not documents()
