"""The error that a program told of is found in what it printed, whatever language it was written in."""

import time

import pytest

from mendflow.core.model.faults import Category, Fault
from mendflow.core.recovery.error_lines import end_text, raised_error, without_end
from mendflow.core.recovery.signature import signature

TRACEBACK = """reading
Traceback (most recent call last):
  File "/srv/job-17/clean.py", line 3, in <module>
    row["id"]
    ~~~^^^^^^
KeyError: 'id'
"""

CHAINED = (
    TRACEBACK
    + """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "clean.py", line 9, in <module>
    raise BadTable("row 17 of 40 is short") from error
tables.BadTable: row 17 of 40 is short
and a second line of its message
"""
)

GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  |     raise ExceptionGroup("two", [ValueError(1)])
  | ExceptionGroup: two (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: 1
    +------------------------------------
"""

JAVA = """INFO starting
Exception in thread "main" java.lang.RuntimeException: job failed
\tat Main.run(Main.java:12)
\tat Main.main(Main.java:5)
Caused by: java.io.FileNotFoundException: /data/7.bam (No such file or directory)
\tat java.base/java.io.FileInputStream.open0(Native Method)
\t... 2 more
"""

NODE = """/srv/x.js:1
x.y()
  ^

TypeError: x.y is not a function
    at Object.<anonymous> (/srv/x.js:1:3)
    at Module._compile (node:internal/modules/cjs/loader:1105:14)

Node.js v18.0.0
"""

R_SHORT = "Loading\nError in library(limma) : there is no package called 'limma'\nExecution halted\n"
R_LONG = "Error in read.table(file = file) : \n  no lines available\nCalls: read.csv\nExecution halted\n"
GO = "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()\n"
RUST = (
    "thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds: the len is 3\nnote: run with `RUST_BACKTRACE=1`\n"
)
CPP = (
    "terminate called after throwing an instance of 'std::out_of_range'\n  what():  vector::at\nAborted (core dumped)\n"
)


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        (TRACEBACK, "KeyError: 'id'"),
        (CHAINED, "tables.BadTable: row 17 of 40 is short"),
        (TRACEBACK + "cleaning up\n", "KeyError: 'id'"),
        (GROUP, "ExceptionGroup: two (1 sub-exception)"),
        ("Traceback (most recent call last):\n  File 'a'\nKeyboardInterrupt\n", "KeyboardInterrupt"),
        (JAVA, "java.io.FileNotFoundException: /data/7.bam (No such file or directory)"),
        (NODE, "TypeError: x.y is not a function"),
        (R_SHORT, "Error in library(limma) : there is no package called 'limma'"),
        (R_LONG, "Error in read.table(file = file) : no lines available"),
        ("Error: object 'x' not found\nExecution halted\n", "Error: object 'x' not found"),
        (RUST, "panicked: index out of bounds: the len is 3"),
        (CPP, "std::out_of_range: vector::at"),
        (GO, "panic: runtime error: index out of range"),
        ("sh: 1: samtools: not found\n", "command not found: samtools"),
        ("bash: line 2: samtools: command not found\n", "command not found: samtools"),
        ("/w/a.1.script: 2: samtools: not found\n", "command not found: samtools"),
        ("run.sh: line 3: bwa: command not found\n", "command not found: bwa (run.sh: line 3)"),
        ("cat: in.txt: No such file or directory\nsome more\n", "cat: in.txt: No such file or directory"),
        ("[E::hts_open] cannot open\nsamtools: error: bad header\nDone in 3 s\n", "samtools: error: bad header"),
        ("2024-05-01 12:00:01 ERROR loader - no table 17\nbye\n", "2024-05-01 12:00:01 ERROR loader - no table 17"),
        ("ERROR: LoadError: UndefVarError: y not defined\n", "ERROR: LoadError: UndefVarError: y not defined"),
        ("\x1b[31mfatal: not a git repository\x1b[0m\n", "fatal: not a git repository"),
        ("could not reach 10.0.0.7\n", "could not reach 10.0.0.7"),
        ("", ""),
        ("\n\n", ""),
    ],
)  # fmt: skip
def test_the_error_of_a_program_is_found_in_what_it_printed(stderr: str, error: str) -> None:
    assert raised_error(stderr) == error


def test_an_error_is_found_between_lines_that_are_none() -> None:
    assert raised_error("one\nERROR: the table is empty\ntwo\n") == "ERROR: the table is empty"


@pytest.mark.parametrize(
    "last",
    ["disk quota exceeded", "the card is refused", "connection reset", "Unable to open run7.db", "3 of 40 rows failed"],
)
def test_a_last_line_that_says_that_something_did_not_work_is_the_error(last: str) -> None:
    assert raised_error(f"all is well\n{last}\n") == last
    assert raised_error(f"{last}\nall is well\n") == "", "only the last line is taken at its word"


@pytest.mark.parametrize(
    "last",
    [
        "Processing 100 %",
        "Processing 99 %\rProcessing 100 %",
        "wrote 3 files",
        "40 rows read, 0 failed",
        "finished without any errors",
        "no errors found",
        "passed: 12, failed: 0",
    ],
)
def test_ordinary_output_is_no_error(last: str) -> None:
    assert raised_error(f"one\n{last}\n") == ""


@pytest.mark.parametrize("how", ["exit code 1", "signal 11", "exit code 127, which a shell gives when it is missing"])
def test_how_a_program_ended_can_be_taken_off_its_error_again(how: str) -> None:
    assert without_end(end_text(how, "KeyError: 'id' (row 3)")) == "KeyError: 'id' (row 3)"


def fault(message: str, code: int = 1) -> Fault:
    text = end_text(f"exit code {code}", message)
    return Fault(name="exitCode", category=Category.JOB, message=text, exit_code=code)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Error: cannot open /data/run1.db: locked by 0x7fa1", "Error: cannot open /data/run22.db: locked by 0x9cc4"),
        ("KeyError: 'id'", "KeyError: 'name'"),
        ("row 17 of 40 is short", "row 3 of 41,000 is short"),
        ("no sample 5f9d2c1a-77aa-4b5e-9a51-0c44de27a111", "no sample 0d1f2c1a-77aa-4b5e-9a51-0c44de27a222"),
        ("timeout after 3.5 s at 10.0.0.7:8080", "timeout after 12 s at 10.0.1.9:80"),
    ],
)
def test_one_cause_is_one_group_whatever_numbers_paths_and_ids_it_names(one: str, other: str) -> None:
    assert signature(fault(one)) == signature(fault(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (fault("KeyError: 'id'"), fault("ValueError: 'id'")),
        (fault("sh: 1: samtools: not found", 127), fault("sh: 1: bwa: not found", 127)),
        (fault("disk quota exceeded"), fault("disk quota exceeded", 2)),
    ],
)
def test_failures_with_the_same_exit_code_are_told_apart_by_what_was_raised(one: Fault, other: Fault) -> None:
    assert signature(one) != signature(other)


@pytest.mark.parametrize("unit", ["a::", ": ", "line 1: ", "Caused by: a.", "at x line 1", "x", "Error in ", "a b "])
def test_a_line_without_end_is_looked_at_in_no_time(unit: str) -> None:  # a slot does nothing else meanwhile
    line = (unit * 16_384)[:16_384]
    began = time.process_time()
    raised_error(f"{line}\nTraceback (most recent call last):\n{line}!")
    assert time.process_time() - began < 0.5


def test_of_a_very_long_line_its_beginning_and_its_end_are_known() -> None:
    path = "/deep" * 400
    assert raised_error(f"cat: {path}: No such file or directory").startswith("cat: /deep/deep")
    assert len(raised_error("ValueError: " + "x" * 5000)) <= 400
