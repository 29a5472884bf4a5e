"""A whole engine, served by the exception service of a mendflow server: python engine.py URL CASE < FLOW.json

FLOW.json is {"flow": NAME, "data": {...}, "steps": {NAME: COMMAND, ...}}: steps that the shell runs in this order; one
whose command is null is left to a worklet that rules choose. The engine knows nothing of exceptions: it tells of points
in the life of its cases, holds when told to, and does what it is ordered (docs/reference/engines.md)."""

import json
import os
import subprocess
import sys
import urllib.request


class Engine:
    def __init__(self, url, name, token=""):
        self.url, self.name, self.cases, self.obeyed = f"{url}/api/v1/engines", name, {}, {}
        self.headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self.post("", name=name)

    def post(self, path, **body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), self.headers, method="POST")
        with urllib.request.urlopen(request, timeout=90) as answer:
            return json.load(answer)

    def start(self, id, flow, steps, data):
        self.cases[id] = {"id": id, "flow": flow, "steps": dict(steps), "data": dict(data), "status": "running"}
        self.cases[id] |= {"left": list(steps), "phase": "case-pre", "tries": 0, "held": "", "suspended": set()}

    def serve(self, wait_ms=1000):
        while any(case["status"] == "running" for case in self.cases.values()):
            moved = [self.advance(case) for case in list(self.cases.values())]
            for order in self.post(f"/{self.name}/orders?wait_ms={0 if any(moved) else wait_ms}"):
                self.post(f"/{self.name}/done", order=order["id"], answer=self.obey(order))

    def advance(self, case):
        if case["status"] != "running" or case["held"] or case["suspended"]:
            return False
        _ = self.run(case) if case["phase"] == "run" else self.tell(case) or self.go_on(case)
        return True

    def run(self, case):
        env = {**os.environ, **{name: str(value) for name, value in case["data"].items()}}
        ended = subprocess.run(case["steps"][case["left"][0]], shell=True, env=env, capture_output=True, text=True)
        case["exit_code"], case["printed"] = ended.returncode, ended.stdout + ended.stderr
        case["phase"] = "abort" if ended.returncode else "item-post"

    def tell(self, case):
        phase, step = case["phase"], "" if case["phase"].startswith("case") else case["left"][0]
        item = {"item": step, "task": step, "kind": "step", "status": "running", "attempts": case["tries"]}
        facts = {"case": {"status": "running", "data": case["data"], "items": [item] if step else []}}
        facts |= {"fault": {"message": case["printed"], "exit_code": case["exit_code"]}} if phase == "abort" else {}
        id = f"{case['id']}/{len(case['left'])}/{case['tries']}/{phase}"
        event = {"id": id, "type": phase, "case": case["id"], "flow": case["flow"], "item": step or None}
        case["held"] = id if self.post(f"/{self.name}/events", **event, facts=facts)["held"] else ""
        return bool(case["held"])

    def go_on(self, case):
        phase, case["held"] = case["phase"], ""
        if phase == "item-pre":
            case["phase"], case["tries"] = "run", case["tries"] + 1
        elif phase in ("abort", "selection", "case-post"):
            self.end(case, "completed" if phase == "case-post" else "failed")
        else:
            case["left"] = case["left"][phase == "item-post" :]
            step, case["tries"] = next(iter(case["left"]), ""), 0
            case["phase"] = ("item-pre" if case["steps"][step] else "selection") if step else "case-post"

    def end(self, case, status):
        case["status"] = status
        self.post(f"/{self.name}/cases", case=case["id"], flow=case["flow"], facts={"status": status})

    def obey(self, order):
        call, given = order["call"], order["with"]
        if call == "release":
            return bool([self.go_on(case) for case in self.cases.values() if case["held"] == given["event"]])
        case = self.cases.get(order["case"], {"status": "unknown"})
        if case["status"] != "running" or order["item"] not in (None, *case["left"][:1]):
            return False
        if self.obeyed.setdefault((call, order["case"], given["by"]), order["id"]) != order["id"]:
            return True  # the same order once more
        if call in ("suspend", "continue"):
            (case["suspended"].add if call == "suspend" else case["suspended"].discard)(order["item"])
        elif call == "write":
            case["data"].update(given["values"])
        elif call == "cancel" or (call == "fail" and not given["proceed"]):
            self.end(case, "cancelled" if call == "cancel" else "failed")
        else:  # restart; or complete, remove, fail and proceed: the next step
            case["data"].update(given.get("values") or given.get("outputs") or {})
            case["phase"] = "item-pre" if call == "restart" else "item-post"
            self.go_on(case)
        return True


if __name__ == "__main__":
    url, case = sys.argv[1:]
    engine = Engine(url, "small", token=os.environ.get("MENDFLOW_TOKEN", ""))
    engine.start(case, **json.load(sys.stdin))
    engine.serve()
    print(engine.cases[case]["status"], json.dumps(engine.cases[case]["data"]))
