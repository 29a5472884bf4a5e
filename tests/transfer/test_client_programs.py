"""Places that are reached through a program: scp by OpenSSH's client and a real server, gsiftp by globus-url-copy."""

import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from mendflow.core.data.protocols import target_flaw
from mendflow.core.model.data import StorageElement
from mendflow.core.model.values import FileRef
from mendflow.pilot.files.own_files import opened_path
from mendflow.transfer.client_programs import quoted
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, FileMissing, TargetOccupied, TransferFailed
from tests.servers.openssh import PASSWORD, USER, SshServer, ssh_server

real = pytest.mark.openssh


def ref_of(path: Path) -> FileRef:
    content = path.read_bytes()
    return FileRef(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), name=path.name)


@pytest.fixture(scope="module")
def there() -> Iterator[SshServer]:
    with ssh_server() as made:
        yield made


def client(there: SshServer, *, key: bool = True, login: str = USER, **settings: int) -> StorageClient:
    options = {"config": str(there.config), **({"identity_file": str(there.key)} if key else {})}
    url = f"scp://{login}@127.0.0.1:{there.port}{there.root}"
    return StorageClient(StorageElement(name="far", url=url, options=options, **settings))  # type: ignore[arg-type]  # bounds by name


@real
def test_a_file_is_fetched_with_a_key_and_goes_on_where_it_was_cut(there: SshServer, tmp_path: Path) -> None:  # FM-2
    content = os.urandom(3 << 20)
    (there.root / "in put.bin").write_bytes(content)
    url = there.url("in put.bin")
    (tmp_path / "got.part").write_bytes(content[: 1 << 20])
    ref = ref_of(there.root / "in put.bin")
    assert client(there).fetch(url, str(tmp_path / "got"), ref) == (ref.sha256, len(content))
    assert (tmp_path / "got").read_bytes() == content


@real
def test_what_is_not_there_and_who_may_not_log_in_is_told_and_not_tried_again(
    there: SshServer, tmp_path: Path
) -> None:  # FM-2
    with pytest.raises(FileMissing, match="no such file"):
        client(there).fetch(there.url("nothing"), str(tmp_path / "got"))
    with pytest.raises(TransferFailed, match="Permission denied") as refused:
        client(there, key=False).fetch(there.url("nothing"), str(tmp_path / "got"))
    assert not refused.value.passing


@real
def test_a_password_opens_and_stands_in_no_command_line_and_no_message(
    there: SshServer, tmp_path: Path
) -> None:  # FM-2
    (there.root / "small").write_text("with a password")
    seen: list[str] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            for entry in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.append(entry.read_bytes().decode(errors="replace"))
                except OSError:
                    continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        login = f"{USER}:{quote(PASSWORD, safe='')}"
        client(there, key=False, login=login).fetch(there.url("small", login), str(tmp_path / "got"))
    finally:
        over.set()
        watcher.join()
    assert (tmp_path / "got").read_text() == "with a password"
    assert any("sftp" in words for words in seen) and not any(PASSWORD in words for words in seen)
    wrong = f"{USER}:wrong-word"
    with pytest.raises(TransferFailed, match="Permission denied") as refused:
        client(there, key=False, login=wrong).fetch(there.url("small", wrong), str(tmp_path / "other"))
    assert not refused.value.passing and "wrong-word" not in str(refused.value)


@real
def test_a_file_is_written_whole_in_new_folders_and_what_lies_there_is_left_alone(
    there: SshServer, tmp_path: Path
) -> None:  # FM-2
    made = tmp_path / "made"
    made.write_bytes(os.urandom(300_000))
    url = there.url("out/deep/made.bin")
    client(there).publish(str(made), url, ref_of(made), mark="job", turn=1)
    assert (there.root / "out/deep/made.bin").read_bytes() == made.read_bytes()
    client(there).publish(str(made), url, ref_of(made), mark="job", turn=2)  # as when an attempt is repeated
    other = tmp_path / "other"
    other.write_text("something else")
    with pytest.raises(TargetOccupied, match="another file lies at"):
        client(there).publish(str(other), url, ref_of(other), mark="job", turn=3)
    client(there).publish(str(other), url, ref_of(other), mark="job", turn=4, overwrite=True)
    assert (there.root / "out/deep/made.bin").read_text() == "something else"
    assert [path.name for path in (there.root / "out/deep").iterdir()] == ["made.bin"]


@real
def test_an_open_file_is_written_though_another_has_taken_its_place(there: SshServer, tmp_path: Path) -> None:  # SE-2
    made = tmp_path / "made.bin"
    made.write_bytes(os.urandom(50_000))
    ref = ref_of(made)
    with made.open("rb") as file:
        made.rename(tmp_path / "away.bin")
        made.write_bytes(b"x" * 50_000)
        client(there).publish(opened_path(file), there.url("opened.bin"), ref, mark="job", turn=1)
    assert ref_of(there.root / "opened.bin").sha256 == ref.sha256


@real
def test_a_machine_whose_key_nobody_knows_is_not_spoken_to(there: SshServer, tmp_path: Path) -> None:  # FM-2
    (tmp_path / "config").write_text("UserKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n")
    options: dict[str, str | int | float | bool] = {"config": str(tmp_path / "config"), "identity_file": str(there.key)}
    stranger = StorageClient(StorageElement(name="far", url=there.url(""), options=options))
    with pytest.raises(TransferFailed, match="Host key verification failed") as refused:
        stranger.fetch(there.url("small"), str(tmp_path / "got"))
    assert not refused.value.passing


def without_programs(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PATH", str(folder))


def test_where_the_program_is_not_there_the_protocol_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # FM-2
    without_programs(monkeypatch, tmp_path)
    for protocol, program in (("scp", "sftp"), ("gsiftp", "globus-url-copy")):
        with pytest.raises(BadFileUrl, match=f"{protocol}:// cannot be spoken here: the program {program} is not"):
            StorageClient(StorageElement(name="", url=f"{protocol}://host/a"))


GLOBUS = """#!/bin/sh
echo "$@" >> {folder}/told
case "$2" in
  *missing*) echo "error: globus_ftp_client: 550 no such file or directory" >&2; exit 1 ;;
esac
cp {folder}/there "${{3#file://}}"
"""


def test_gsiftp_is_fetched_by_globus_url_copy_and_never_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # FM-2
    program = tmp_path / "globus-url-copy"
    program.write_text(GLOBUS.format(folder=tmp_path))
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "there").write_bytes(os.urandom(100_000))
    url = "gsiftp://grid.example:2811/data/in.bin"
    ref = ref_of(tmp_path / "there")
    far = StorageClient(StorageElement(name="", url=url))
    assert far.fetch(url, str(tmp_path / "got"), ref) == (ref.sha256, 100_000)
    assert url in (tmp_path / "told").read_text()
    with pytest.raises(FileMissing):
        gone = "gsiftp://grid.example/missing"
        StorageClient(StorageElement(name="", url=gone)).fetch(gone, str(tmp_path / "none"))
    assert "can only be read from" in target_flaw(url)


def test_a_path_is_quoted_for_sftp_and_one_that_cannot_be_is_refused() -> None:
    assert quoted('/a b/"c"*') == '"/a b/\\"c\\"*"'
    with pytest.raises(BadFileUrl, match="rename the file"):
        quoted("/a\nrm /b")


def test_options_that_a_program_does_not_take_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "sftp"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadFileUrl, match="does not take these options: keyfile; it takes config"):
        StorageClient(StorageElement(name="far", url="scp://host/a", options={"keyfile": "x"}))


def test_a_machine_that_looks_like_an_option_is_refused() -> None:
    if shutil.which("sftp") is not None:
        with pytest.raises(BadFileUrl):
            StorageClient(StorageElement(name="", url="scp://-oProxyCommand=true/a"))
