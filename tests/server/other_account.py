"""Requests of a process that runs under another account of this machine."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping

from mendflow.server.runner import HttpServer
from tests.patience import PATIENCE_S

NOBODY = 65534
ASK = """
import encodings.idna, http.client, json, os, sys  # all before the account changes: it may not read them
host, port, method, path, account, headers = sys.argv[1:]
if int(account) >= 0:
    os.setgroups([]); os.setgid(int(account)); os.setuid(int(account))
connection = http.client.HTTPConnection(host, int(port), timeout=60)
connection.request(method, path, headers=json.loads(headers))
answer = connection.getresponse()
print(json.dumps([answer.status, answer.read().decode()]))
"""


async def ask(
    served: HttpServer,
    path: str,
    *,
    account: int = -1,
    token: str = "",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """What a process of another account is answered."""
    sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
    where = ["127.0.0.1", str(served.port), method, f"/api/v1{path}", str(account), json.dumps(sent)]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-I", "-c", ASK, *where],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        cwd="/",
    )
    status, text = json.loads(done.stdout)
    return status, text
