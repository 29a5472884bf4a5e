"""What is secret is in the environment, and in no sentence."""

import logging
import traceback
from pathlib import Path

import msgspec
import pytest

from mendflow.core.model.data import StorageElement
from mendflow.transfer.addresses import shown
from mendflow.transfer.element import StorageClient
from mendflow.transfer.errors import BadFileUrl, TransferFailed
from mendflow.transfer.file_systems import redacted
from tests.servers import s3


@pytest.mark.parametrize(
    "wrong",
    [
        {"TEST_S3_KEY": s3.KEY, "TEST_S3_SECRET": "a-wrong-secret"},
        {"TEST_S3_KEY": "a-wrong-key", "TEST_S3_SECRET": s3.SECRET},
    ],
)
def test_a_refusal_by_a_real_server_tells_no_secret(
    tmp_path: Path, wrong: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "mendflow")
    storage = s3.server().element()
    with pytest.raises(TransferFailed) as failure:
        StorageClient(storage, wrong).fetch(f"{storage.url}/a", str(tmp_path / "a"))
    told = "".join(traceback.format_exception(failure.value)) + caplog.text
    assert not failure.value.passing, "asking again with the same key is no use"
    assert not any(secret in told for secret in wrong.values()), told


def test_an_element_has_the_names_of_secrets_and_not_the_secrets() -> None:
    storage = s3.server().element()
    StorageClient(storage, s3.ENVIRONMENT)
    assert s3.SECRET.encode() not in msgspec.json.encode(storage)


def test_the_pilots_own_token_goes_to_no_storage_element() -> None:
    storage = StorageElement(name="s", url="s3://b", options={"token": "env:MENDFLOW_TOKEN"})
    with pytest.raises(BadFileUrl, match="not for storage elements"):
        StorageClient(storage, {"MENDFLOW_TOKEN": "sesame"})


def test_a_sentence_loses_every_secret_and_every_password() -> None:
    text = "cannot open https://me:hunter2@host/a?X-Signature=abc with letmein, nor s3://b/letmein"
    found = redacted(text, frozenset({"letmein"}))
    assert found == "cannot open https://me@host/a?... with ***, nor s3://b/***"
    assert shown("/plain/path?x") == "/plain/path?x"


def test_options_that_do_not_fit_are_told_without_their_values() -> None:
    storage = StorageElement(name="s", url="s3://b", options={"nonsense_option": "env:WORD", "anon": True})
    try:
        StorageClient(storage, {"WORD": "the-secret-word"}).list()
    except (BadFileUrl, TransferFailed) as error:
        assert "the-secret-word" not in str(error)
    else:
        pytest.fail("nothing was said of an option that does not exist")
