"""Secrets by command: set from standard input or a file, listed without their values, removed; and what is refused."""

import os
from pathlib import Path

import pytest

from mendflow.core.model.errors import InvalidRequest
from mendflow.stores.secret_files import SecretFiles
from tests.cli.conftest import Shell


def test_a_secret_is_set_from_a_file_listed_and_removed(shell: Shell) -> None:  # DU-6
    shell.write("value", "tell-nobody-42")
    assert shell.ok("secrets", "set", "api-token", "--file", "value").startswith("secret api-token is set")
    [view] = shell.json("secrets")
    assert view["name"] == "api-token" and view["set_by"] and not view["problem"]
    assert "tell-nobody" not in shell.ok("secrets", "list")
    key = shell.folder / ".mendflow" / "secrets.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert b"tell-nobody-42" not in (shell.folder / ".mendflow" / "store.db").read_bytes()
    os.rename(key, shell.folder / "elsewhere")
    assert "there is no key at" in shell.json("secrets")[0]["problem"]
    refused = shell("secrets", "set", "other", "--file", "value")
    assert refused.returncode != 0 and "give each server on the store the same file" in refused.stderr
    assert shell.ok("secrets", "set", "other", "--file", "value", MENDFLOW_SECRETS_KEY=str(shell.folder / "elsewhere"))
    assert shell.ok("secrets", "remove", "api-token") == "secret api-token is removed\n"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("a b", "long enough", "is no name of a secret"),
        ("short", "abc", "less than 4 characters"),
        ("large", "x" * 70_000, "more than 64 KB"),
    ],
)
def test_what_is_no_secret_is_refused(shell: Shell, name: str, value: str, told: str) -> None:  # DU-6
    shell.write("value", value)
    refused = shell("secrets", "set", name, "--file", "value")
    assert refused.returncode != 0 and told in refused.stderr and value not in refused.stderr


def test_a_run_without_its_secret_is_refused(shell: Shell) -> None:  # DU-6
    shell.write("f.yaml", "jobs: {a: {run: echo a, secrets: [api-token]}}\n")
    refused = shell("run", "f.yaml")
    assert "job a uses the secret api-token, which is not there: mendflow secrets set api-token" in refused.stderr


def test_check_names_each_job_that_a_secret_or_a_limit_is_missing_for(shell: Shell) -> None:  # DU-6
    many = "".join(f"  job{number}: {{run: echo, limits: [gate]}}\n" for number in range(25))
    jobs = (
        "  a: {run: echo, secrets: [key, other]}\n  b: {run: echo, secrets: [key]}\n  c: {run: echo, secrets: [key]}\n"
    )
    shell.write("f.yaml", f"jobs:\n{jobs}{many}")
    shell.write("secret", "long enough")
    shell.ok("secrets", "set", "unrelated", "--file", "secret")
    told = " ".join(shell.ok("check", "f.yaml").split())
    assert "jobs a, b and c use the secret key, which is not there: mendflow secrets set key asks for its" in told
    assert "job a uses the secret other, which is not there" in told
    assert "jobs job0, job1, " in told and ", job19 and 5 more use the limit gate, which nobody has set here" in told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{A-B: api-token}", "`A-B` is no name of an environment variable"),
        ("{../x: {file: api-token}}", "`../x` is no path in the job's folder"),
        ("{TOKEN: 3}", "secrets are a list of names"),
        ("{MENDFLOW_JOB: api-token}", "is a variable of mendflow itself"),
    ],
)
def test_what_is_wrong_in_a_flow_is_told_with_its_place(shell: Shell, given: str, told: str) -> None:
    shell.write("bad.yaml", f"jobs:\n  a: {{run: echo a, secrets: {given}}}\n")
    refused = shell("check", "bad.yaml")
    assert refused.returncode == 2 and told in refused.stderr and "bad.yaml:2:" in refused.stderr


def test_secrets_of_the_machine_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # DU-6
    folder = tmp_path / "mounted"
    folder.mkdir()
    (folder / "api-token").write_text("from a file\n")
    monkeypatch.setenv("MY_DB_PASSWORD", "from a variable")
    files = SecretFiles(tmp_path / "key", (str(folder), "env:MY_"))
    assert files.find("api-token") == ("from a file", str(folder))
    assert files.find("db-password") == ("from a variable", "variable MY_DB_PASSWORD")
    assert files.find("other") is None
    assert set(files.names()) == {"api-token", "db-password"}
    with pytest.raises(InvalidRequest, match="there is no folder"):
        SecretFiles(tmp_path / "key", ("/nowhere/at/all",))


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:  # DU-6
    files = SecretFiles(tmp_path / "key")
    made = files.key(create=True)
    assert made and files.key() == made
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(InvalidRequest, match="can be read by others"):
        files.key()


def test_a_key_is_made_after_a_crash_in_a_process_of_the_same_number(tmp_path: Path) -> None:  # DU-6
    for left in (f"secrets.key.{os.getpid()}", "secrets.key.0123.draft"):
        (tmp_path / left).write_text("half")
        os.utime(tmp_path / left, (0, 0))
    assert len(SecretFiles(tmp_path / "secrets.key").key(create=True)) == 64
    assert not list(tmp_path.glob("*.draft"))


def test_whoever_sets_a_short_secret_is_told_where_it_is_masked(shell: Shell) -> None:  # DU-6
    shell.write("value", "2024")
    assert "less than 8 characters" in shell.ok("secrets", "set", "year", "--file", "value")


@pytest.mark.parametrize("path", ["data", "data/token"])
def test_a_secret_file_in_the_place_of_an_input_or_below_it_is_refused(shell: Shell, path: str) -> None:  # DU-6
    shell.write("value", "tell-nobody-42")
    shell.ok("secrets", "set", "api-token", "--file", "value")
    shell.write(
        "f.yaml", f"jobs: {{a: {{run: ls, inputs: {{data: value}}, secrets: {{{path}: {{file: api-token}}}}}}}}\n"
    )
    refused = shell("run", "f.yaml")
    assert refused.returncode != 0
    assert f"the secret file `{path}` would be written into the input `data`" in refused.stderr
