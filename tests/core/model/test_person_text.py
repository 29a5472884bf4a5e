"""A sentence names a person, or says what is known of whoever has no name."""

from mendflow.core.model.principals import LOCAL, person_text


def test_whoever_has_no_name_is_called_by_the_place() -> None:
    assert f"flow night was removed by {person_text('ann')}" == "flow night was removed by ann"
    assert person_text(LOCAL) == "somebody on the server's machine"
