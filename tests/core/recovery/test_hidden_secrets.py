"""What sounds like a secret is hidden, and what does not is left as it is."""

import pytest

from mendflow.core.model.values import Value
from mendflow.core.recovery.redaction import REDACTED, is_secret_name, is_secret_variable, redact


@pytest.mark.parametrize(
    "name",
    [
        "PASSWORD",
        "ARCHIVE_PASSWORD",
        "dbPassword",
        "token",
        "GITHUB_TOKEN",
        "api-key",
        "apikey",
        "AWS_SECRET_KEY",
        "PGPASSWORD",
    ],
)
def test_a_name_that_sounds_secret_is_one(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", "key", "keyboard", "tokens", "max_tokens", "secretary", "passed", "plate", "N"])
def test_a_name_that_does_not_sound_secret_is_none(name: str) -> None:
    assert not is_secret_name(name)


def test_texts_of_secrets_are_hidden_in_maps_within_maps_and_nothing_else_is() -> None:
    data = {"token": "abc", "n": 1, "tokens": "x", "in": {"password": "p", "user": "ann"}, "secret": 5}
    hidden = {"token": REDACTED, "n": 1, "tokens": "x", "in": {"password": REDACTED, "user": "ann"}, "secret": 5}
    assert redact(data) == hidden


def test_texts_of_secrets_are_hidden_in_lists_however_deep() -> None:
    data = {"tried": [{"token": "abc", "n": 1}, ["x"]], "password": ["one", ["two"], 3], "none": None}
    hidden = {"tried": [{"token": REDACTED, "n": 1}, ["x"]], "password": [REDACTED, [REDACTED], 3], "none": None}
    assert redact(data) == hidden
    deep: Value = "s"
    for _ in range(60):
        deep = {"in": [{"token": deep}]}
    assert "'s'" not in repr(redact({"data": deep}))


def test_an_address_with_a_password_in_it_is_a_secret_whatever_it_is_called() -> None:
    assert is_secret_variable("STORE", "postgresql://me:hush@host/db")
    assert not is_secret_variable("STORE", "postgresql://host:5432/db?at=me@home")
    assert not is_secret_variable("PATH", "/usr/bin:/bin")
