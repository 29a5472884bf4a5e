"""Real OpenSearch nodes, for tests: each a Java process of its own, so that one can be killed like a machine.

Maven fetches the jars once, at the versions of opensearch.pom.xml, into a folder outside the project. Beside them is an
archive of the classes that a node loads, as Java keeps them in memory: with it a node starts with half the processor
time. `python -m tests.servers.opensearch` makes both. A node keeps its ports and its data: killed and started again, it
is the same node."""

import functools
import hashlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tests.servers.jars import fetched_jars
from tests.servers.processes import dying_with_us, end, free_port, launch

POM = Path(__file__).with_name("opensearch.pom.xml")
MAIN = "org.codelibs.opensearch.runner.OpenSearchRunner"
HTTP = "org.opensearch.transport.Netty4Plugin"
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
HTTP_PORTS = range(9210, 9299)
"""Where the runner looks for a free port; it knows no others."""

START_S = 300


def lacking() -> str:
    """What is not on this machine that real nodes need; empty if they can run."""
    return " and ".join(program for program in ("java", "mvn") if shutil.which(program) is None)


def jars() -> Path:
    """The folder with a node's jars."""
    return fetched_jars(POM)


@functools.cache
def class_archive() -> Path:
    """Where the archive of classes is, which only the same Java can use, with the same jars."""
    told = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    return jars().with_name(f"{jars().name}-{hashlib.sha256(told).hexdigest()[:16]}.jsa")


def make_class_archive() -> None:
    """Let a node do a little of everything, and keep what it has loaded."""
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, "classes.jsa")
        node = Node(Path(folder, "node"), java=(f"-XX:ArchiveClassesAtExit={new}",))
        node.start()
        mapping = {"mappings": {"dynamic": False, "properties": {"n": {"type": "long"}, "k": {"type": "keyword"}}}}
        _ask(node, "PUT", "/some", json.dumps(mapping))
        lines = [line for n in range(20) for line in ({"index": {"_id": str(n)}}, {"n": n, "k": f"k{n}"})]
        _ask(node, "POST", "/some/_bulk?refresh=true", "".join(json.dumps(line) + "\n" for line in lines))
        query = {"query": {"bool": {"filter": [{"range": {"n": {"gt": 3}}}, {"prefix": {"k": "k"}}]}}}
        _ask(node, "POST", "/some/_search", json.dumps({**query, "sort": [{"k": "desc"}], "size": 5}))
        _ask(node, "GET", "/some/_doc/3")
        node.stop()
        if new.exists():
            made = class_archive().with_suffix(f".{os.getpid()}")
            shutil.copyfile(new, made)
            made.rename(class_archive())


def _ask(node: "Node", method: str, path: str, body: str = "") -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{node.address}{path}", body.encode() or None, headers, method=method)
    urllib.request.urlopen(request, timeout=60).close()


class Node:
    """`java` are settings of Java beyond the usual ones."""

    def __init__(self, folder: Path, *, heap_mb: int = 512, java: Sequence[str] = ()) -> None:
        self._folder = folder
        self._heap_mb = heap_mb
        self._java = tuple(java)
        self._process: subprocess.Popen[bytes] | None = None
        self._cluster = f"t{random.getrandbits(64):016x}"
        self._peers = ""
        self.port = free_port(HTTP_PORTS)
        self.transport_port = free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def join(self, cluster: str, nodes: Sequence["Node"]) -> None:
        """Before the first start: be one of these."""
        hosts = json.dumps([f"127.0.0.1:{node.transport_port}" for node in nodes])
        self._cluster = cluster
        self._peers = f"discovery.seed_hosts: {hosts}\ncluster.initial_cluster_manager_nodes: {hosts}\n"

    def launch(self) -> None:
        """Start, and do not wait."""
        assert self._process is None, "it runs already"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "opensearch.yml").write_text(self._settings())
        self._process = launch(self._command(), log=self._folder / "out.log", cwd=self._folder)

    def start(self) -> None:
        """Start, if it does not run, and wait until it serves what it holds."""
        if self._process is None:
            self.launch()
        self.wait()

    def wait(self, *, nodes: int = 0, status: str = "yellow") -> None:
        """Until the cluster, as this node sees it, is in this state or a better one, with so many nodes, if given."""
        until = time.monotonic() + START_S
        path = f"/_cluster/health?wait_for_status={status}&timeout=1s" + (f"&wait_for_nodes={nodes}" if nodes else "")
        while time.monotonic() < until:
            assert self._process is None or self._process.poll() is None, self._story()
            try:
                with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as answer:
                    if json.load(answer)["cluster_name"] == self._cluster:
                        return
            except (OSError, urllib.error.HTTPError):
                time.sleep(0.1)
        raise AssertionError(self._story())

    def kill(self) -> None:
        """As when the power goes: no goodbye."""
        self._end(kill=True)

    def stop(self) -> None:
        self._end(kill=False)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, kill=kill)

    def _command(self) -> list[str]:
        heap = [f"-Xms{self._heap_mb}m", f"-Xmx{self._heap_mb}m"]
        archive = [f"-XX:SharedArchiveFile={class_archive()}"] if class_archive().exists() else []
        java = [
            "java",
            *JVM,
            *(self._java or archive),
            *heap,
            f"-Djava.io.tmpdir={self._folder}",
            "-cp",
            f"{jars()}/*",
            MAIN,
        ]
        places = ["-basePath", str(self._folder), "-confPath", str(self._folder)]
        port = ["-baseHttpPort", str(self.port - 1)]  # the runner counts its nodes from one
        return [
            *dying_with_us(),
            *java,
            *places,
            *port,
            "-numOfNode",
            "1",
            "-clusterName",
            self._cluster,
            "-moduleTypes",
            HTTP,
        ]

    def _settings(self) -> str:
        return (
            "network.host: 127.0.0.1\n"
            f"transport.port: {self.transport_port}\n"
            "cluster.routing.allocation.disk.threshold_enabled: false\n"
            "cluster.max_shards_per_node: 5000\n"
            # A dead node is known at once by its connection; this is for one that is only stopped.
            "cluster.fault_detection.follower_check.timeout: 2s\n"
            "cluster.fault_detection.leader_check.timeout: 2s\n"
        ) + (self._peers or "discovery.type: single-node\n")

    def _story(self) -> str:
        log = self._folder / "out.log"
        return f"OpenSearch did not come up:\n{log.read_text(errors='replace')[-4000:] if log.exists() else ''}"


def cluster(folder: Path, size: int, *, heap_mb: int = 384) -> list[Node]:
    """Nodes that know each other, all up."""
    nodes = [Node(folder / f"node-{number}", heap_mb=heap_mb) for number in range(size)]
    name = f"t{random.getrandbits(64):016x}"
    for node in nodes:
        node.join(name, nodes)
        node.launch()
    for node in nodes:
        node.wait(nodes=size)
    return nodes


if __name__ == "__main__":
    if not class_archive().exists():
        make_class_archive()
    print(f"OpenSearch for tests is in {jars()}, its classes in {class_archive()}")
