"""Rules hear of a call that failed before the process does, and mend it."""

from pathlib import Path

from aiohttp import web

from mendflow.client import Client
from mendflow.core.soap.envelope import write_envelope
from mendflow.formats.rules import read_rules
from tests.server.soap.shop import INVOKE, RECEIVE, REPLY, SHOP, number_in, order, partner, process, told

RULES = """
rules: buyer
abort:
  "*":
    - if: item.kind == "invoke" && fault.name == "partnerUnreachable"
      do: once-more
exlets:
  once-more:
    steps:
      - restart:
"""


async def test_a_rule_of_the_flow_calls_a_partner_again(client: Client, tmp_path: Path) -> None:  # EX-1
    answers = [told(b"away", 503), told(b"away", 503), told(write_envelope([f'<receipt xmlns="{SHOP}">8</receipt>']))]

    def answer(_: bytes) -> web.Response:
        return answers.pop(0)

    async with partner(answer) as (address, heard):
        await client.deploy(process(tmp_path, "buyer", f"<sequence>{RECEIVE}{INVOKE}{REPLY}</sequence>", address))
        await client.put_rules(read_rules(RULES, "rules.yaml"))
        status, body = await client.post("buyer", order(1))
    assert (status, number_in(body)) == (200, 8)
    assert len(heard) == 3
