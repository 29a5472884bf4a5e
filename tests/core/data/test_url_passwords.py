"""Passwords of URLs in texts of any kind, as flow files are."""

import time

import pytest

from mendflow.core.data.url_passwords import hide_passwords, password_in

FEW, MANY = 4_000, 64_000
QUOTED = ['"', "\\'", '${{"', '"${{', """${{"${{'""", """"${{'"+'"'""", "://${{'", "}}", "}}:a", "}}a@", """'}}:'"@"""]


@pytest.mark.parametrize(
    "url",
    [
        "https://me:PW@host/x",
        "https://me:PW@${{ inputs.host }}/x",
        "https://${{ inputs.user }}:PW@host",
        "https://${{ inputs.users['a:b'] }}:PW@host",
        "https://${{ {'a': {'b': 1}}}}:PW@host",
        "${{ inputs.scheme }}://me:PW@host",
        "https://me:PW${{ inputs.rest }}@host",
        "https://me:${{ inputs.first }}PW@host",
        "https://me:PW@more@host",
        """https://${{ "a}}b" }}:PW@host""",
        """https://${{ 'a}}b' + "it's }}" }}:PW@host""",
        """https://me:${{ "a}}b" }}PW@host""",
        """https://${{ "a\\"}}b" }}:PW@host""",
        """https://${{ "a${{b}} ${{" + 'c ${{ d' }}:PW@host""",
        """${{ "}} " }}://me:PW@host""",
    ],
)
def test_the_password_of_a_url_is_hidden_wherever_it_stands(url: str) -> None:
    assert "PW" in password_in(url)
    texts = [url, f"a: {url} # {url}\n", f"# begins with ${{{{ only\na: {url}"]
    for text in [*texts, f"a: ${{{{ '{url}' }}}}"] if "'" not in url else texts:
        assert "PW" not in hide_passwords(text), text
        assert "(hidden)" in hide_passwords(text)


@pytest.mark.parametrize(
    "text",
    [
        """a: 'https://${{ inputs[''a}}b''] }}:PW@host'""",
        """a: "https://${{ \\"a}}b\\" }}:PW@host\"""",
        """a: "https://me:${{ inputs[\\"a}}b\\"] }}PW@host/x\"""",
        """a: https://${{ it's }}:PW@host""",
    ],
)
def test_the_password_is_hidden_however_a_file_writes_the_quotes(text: str) -> None:  # SE-1
    assert "PW" not in hide_passwords(text) and "(hidden)@host" in hide_passwords(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://me:${{ inputs.p }}@host",
        "https://me:${{ inputs.p }}${{ inputs.q }}@host",
        "http://host:80/x, mail: me@host",
        "a: ${{ inputs.a }}, b: me:word@host",
        """https://me:${{ "a}}b" }}@host""",
        """https://me:${{"a}}b"}}${{ inputs['q'] }}@host/x""",
        """curl https://${{ inputs["host"] }}:80/x; mail ${{ inputs["user"] }}_ops@host""",
    ],
)
def test_what_is_no_password_stays(text: str) -> None:
    assert hide_passwords(text) == text


@pytest.mark.parametrize(
    "part", ["a", "://a:", "://${{", "${{", "://x:y}}${{", "${{://x:y}}", "://a:@", "@", "://a:b@", *QUOTED]
)
@pytest.mark.parametrize("begin", ["", "://a", "://a:", "s://${{ x }}:"])
def test_the_time_it_takes_grows_as_the_text(begin: str, part: str) -> None:
    """A text of sixteen times the length takes about sixteen times as long; 256 times if parts are read again."""
    assert _seconds(begin + part * MANY) < 80 * _seconds(begin + part * FEW)


def _seconds(text: str) -> float:
    """The time of this thread alone, the least of several."""

    def once() -> float:
        start = time.thread_time()
        hide_passwords(text)
        password_in(text)
        return time.thread_time() - start

    return min(once() for _ in range(5))
