"""The password of a job description reaches the place where its files are, and nothing else."""

import gzip
from pathlib import Path
from typing import Any

from tests.cli.conftest import Shell
from tests.formats.jsdl.documents import document, program, staging
from tests.servers.ftp import ftp_server

PASSWORD = "hush/Qz7:@%äx"
QUOTED = "hush%2FQz7%3A%40%25%C3%A4x"
WSS = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"


def credential(user: str = "ann", password: str = PASSWORD) -> str:
    return (
        f'<Credential xmlns="http://schemas.ogf.org/hpcp/2007/11/ac"><UsernameToken xmlns="{WSS}">'
        f"<Username>{user}</Username><Password>{password}</Password></UsernameToken></Credential>"
    )


def test_a_credential_logs_in_and_stands_in_no_file_of_ours(shell: Shell, tmp_path: Path) -> None:  # FM-2
    there = tmp_path / "there"
    there.mkdir()
    (there / "in.txt").write_text("from afar\n")
    with ftp_server(there, "ann", PASSWORD) as (port, logins):
        place = f"ftp://127.0.0.1:{port}"
        described = document(
            program("/bin/cat", "in.txt", more="<Output>out.txt</Output>"),
            staging("in.txt", source=f"{place}/in.txt", more=credential()),
            staging("out.txt", target=f"{place}/new/out.txt", more=credential()),
        )
        ran = run_in(shell, described)
        assert ran["status"] == "completed"
        assert logins and all(right for _, right in logins)
    assert (there / "new" / "out.txt").read_text() == "from afar\n"
    asked = (("why", "last"), ("history", ran["id"]), ("jobs", "--json"), ("flows", "show", "job", "--json"))
    told = [shell.ok(*words) for words in asked]
    shell.ok("report", ran["id"], "-o", "report.html")
    shell.ok("admin", "export", "--all", "--to", "all.archive")
    assert not leaks(shell.folder, told)


def run_in(shell: Shell, described: str) -> dict[str, Any]:
    """Run a document that lies elsewhere, so that nothing of it is in the folder but what mendflow writes."""
    folder = shell.folder / "theirs"
    folder.mkdir()
    (folder / "job.jsdl").write_text(described)
    ran: dict[str, Any] = shell.json("run", "theirs/job.jsdl", "--quiet")
    (folder / "job.jsdl").unlink()
    return ran


def leaks(folder: Path, texts: list[str]) -> list[str]:
    """Where the password stands, as it is or as in a URL: files, packed ones unpacked, and texts."""
    found = [text[:200] for text in texts if PASSWORD in text or QUOTED in text]
    both = (PASSWORD, QUOTED)
    for path in folder.rglob("*"):
        if path.is_file() and any(each.encode() in path.read_bytes() for each in both):
            found.append(str(path))
        if path.name.endswith(".archive") and any(each.encode() in gzip.decompress(path.read_bytes()) for each in both):
            found.append(f"{path}, unpacked")
    return found
