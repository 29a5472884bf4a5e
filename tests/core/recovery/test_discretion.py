"""What sounds like a secret is hidden, and what does not is left as it is."""

import pytest

from mendflow.core.model.values import Value
from mendflow.core.recovery.discretion import HIDDEN, discreet, sounds_secret


@pytest.mark.parametrize(
    "name",
    ["PASSWORD", "ARCHIVE_PASSWORD", "dbPassword", "token", "GITHUB_TOKEN", "api-key", "apikey", "AWS_SECRET_KEY"],
)
def test_a_name_that_sounds_secret_is_one(name: str) -> None:
    assert sounds_secret(name)


@pytest.mark.parametrize("name", ["", "key", "keyboard", "tokens", "max_tokens", "secretary", "passed", "plate", "N"])
def test_a_name_that_does_not_sound_secret_is_none(name: str) -> None:
    assert not sounds_secret(name)


def test_texts_of_secrets_are_hidden_in_maps_within_maps_and_nothing_else_is() -> None:
    data = {"token": "abc", "n": 1, "tokens": "x", "in": {"password": "p", "user": "ann"}, "secret": 5}
    hidden = {"token": HIDDEN, "n": 1, "tokens": "x", "in": {"password": HIDDEN, "user": "ann"}, "secret": 5}
    assert discreet(data) == hidden


def test_texts_of_secrets_are_hidden_in_lists_however_deep() -> None:
    data = {"tried": [{"token": "abc", "n": 1}, ["x"]], "password": ["one", ["two"], 3], "none": None}
    hidden = {"tried": [{"token": HIDDEN, "n": 1}, ["x"]], "password": [HIDDEN, [HIDDEN], 3], "none": None}
    assert discreet(data) == hidden
    deep: Value = "s"
    for _ in range(60):
        deep = {"in": [{"token": deep}]}
    assert "'s'" not in repr(discreet({"data": deep}))
