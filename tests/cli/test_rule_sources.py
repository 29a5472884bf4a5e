"""Sources of conditions by command: from options and from a file, tried, removed, and told where they are missing."""

import pytest

from tests.cli.conftest import Shell
from tests.cli.test_server import served

SOURCES = """
sources:
  free:
    kind: command
    address: "printf '{\\"left\\": 4}'"
    select: left
    timeout: 5 s
    cache: 1 min
    secret_file: key
  quota: {kind: file, address: /no/such/file, away: value, value: 0}
"""
RULES = """
rules: f
abort:
  a:
    - if: sources.free == 0 || sources.fre == 1
      do:
        - re-submit:
"""


@pytest.mark.full
def test_sources_are_imported_listed_tried_and_removed(shell: Shell) -> None:  # EX-6
    shell.environment["MENDFLOW_SERVER"] = served(shell, "--allow-sources", "command,file")
    assert "There are no sources" in shell.ok("rules", "sources")
    shell.write("key", "hush\n")
    shell.write("sources.yaml", SOURCES)
    assert shell.ok("rules", "sources", "import", "sources.yaml") == "registered: free, quota\n"
    listed = shell.ok("rules", "sources")
    assert "free" in listed and "the condition errs" in listed and "hush" not in listed
    assert shell.ok("rules", "sources", "try", "free").startswith("4 ")
    away = shell("rules", "sources", "try", "quota")
    assert away.returncode == 1 and "/no/such/file cannot be read" in away.stdout + away.stderr
    assert "sources.late" in shell.ok("rules", "sources", "add", "late", "--command", "sleep 60", "--timeout", "50 ms")
    late = shell("rules", "sources", "try", "late")
    assert late.returncode == 1 and "no answer within 0.05 s" in late.stdout + late.stderr
    shell.write("f.rules.yaml", RULES)
    checked = shell("rules", "check", "f.rules.yaml")
    told = checked.stdout + checked.stderr
    assert "sources.fre, which is not registered" in told and "sources.free, which" not in told, told
    assert shell.ok("rules", "sources", "remove", "quota") == "quota is removed\n"


REFUSED = [
    # row, words, what is told
    ("not allowed", ("add", "x", "--command", "true"), "--allow-sources command"),
    ("no kind", ("add", "x"), "a source is one of --http, --command, --sql and --file"),
    ("no database", ("add", "x", "--sql", "select 1"), "--sql and --database go together"),
    ("bad name", ("add", "a b", "--http", "https://example.org/"), "is not a name for a source"),
    ("bad time", ("add", "x", "--http", "https://example.org/", "--timeout", "soon"), "--timeout 'soon' is not a time"),
    ("too long", ("add", "x", "--http", "https://example.org/", "--timeout", "1 h"), "between 1 ms and 30 s"),
    ("no JSON", ("add", "x", "--http", "https://example.org/", "--when-away", "none"), "is not JSON"),
    ("unknown", ("remove", "x"), "no source x is registered"),
    ("secret in the file", ("import", "bad.yaml"), "a secret does not stand here"),
    ("unknown key", ("import", "typo.yaml"), "did you mean `timeout`?"),
]


@pytest.mark.full
def test_what_is_wrong_with_a_source_is_told_in_a_sentence(shell: Shell) -> None:
    shell.environment["MENDFLOW_SERVER"] = served(shell)
    shell.write("bad.yaml", "sources: {x: {kind: http, address: 'https://example.org/', secret: hush}}\n")
    shell.write("typo.yaml", "sources: {x: {kind: http, address: 'https://example.org/', timeot: 1 s}}\n")
    for row, words, told in REFUSED:
        done = shell("rules", "sources", *words)
        said = " ".join((done.stderr + done.stdout).split())
        assert done.returncode != 0 and told in said, (row, said)
