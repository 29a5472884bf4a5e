"""A real Apache ODE, a BPEL engine that nobody here wrote: a Java process with configuration of our own.

Maven fetches the jars once, at the versions of ode.pom.xml, into a folder outside the project. A process is deployed as
a folder with its files and a `deploy.xml`; ODE writes a file beside it when it has taken it, or says why not in its
log. All settings that matter to callers are its defaults: 60 s for an answer, 10 connections."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.servers.jars import fetched_jars
from tests.servers.processes import dying_with_us, end, free_port, launch

POM = Path(__file__).with_name("ode.pom.xml")
START_S = 180
JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx512m")
OPENS = ("java.lang", "java.util", "java.util.concurrent", "java.io", "java.net")
"""What ODE's libraries reach into, which Java 17 closes."""

WEB_XML = """<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="http://java.sun.com/xml/ns/javaee" version="2.5">
  <servlet>
    <servlet-name>engine</servlet-name>
    <servlet-class>org.apache.ode.axis2.hooks.ODEAxisServlet</servlet-class>
    <init-param><param-name>axis2.xml.path</param-name><param-value>{axis2}</param-value></init-param>
    <load-on-startup>1</load-on-startup>
  </servlet>
  <servlet-mapping><servlet-name>engine</servlet-name><url-pattern>/processes/*</url-pattern></servlet-mapping>
</web-app>
"""
AXIS2_XML = """<?xml version="1.0" encoding="UTF-8"?>
<axisconfig name="engine-for-tests">
  <parameter name="hotdeployment">false</parameter>
  <parameter name="servicePath">processes</parameter>
  <parameter name="sendStacktraceDetailsWithFaults">false</parameter>
  <messageReceivers>
    <messageReceiver mep="http://www.w3.org/ns/wsdl/in-only"
        class="org.apache.axis2.receivers.RawXMLINOnlyMessageReceiver"/>
    <messageReceiver mep="http://www.w3.org/ns/wsdl/in-out"
        class="org.apache.axis2.receivers.RawXMLINOutMessageReceiver"/>
  </messageReceivers>
  <messageFormatters>
    <messageFormatter contentType="text/xml" class="org.apache.axis2.transport.http.SOAPMessageFormatter"/>
  </messageFormatters>
  <messageBuilders>
    <messageBuilder contentType="text/xml" class="org.apache.axis2.builder.SOAPBuilder"/>
  </messageBuilders>
  <transportReceiver name="http" class="org.apache.axis2.transport.http.AxisServletListener">
    <parameter name="port">{port}</parameter>
  </transportReceiver>
  <transportSender name="http" class="org.apache.axis2.transport.http.CommonsHTTPTransportSender">
    <parameter name="PROTOCOL">HTTP/1.1</parameter>
  </transportSender>
  <phaseOrder type="InFlow">
    <phase name="Transport">
      <handler name="uri" class="org.apache.axis2.dispatchers.RequestURIBasedDispatcher">
        <order phase="Transport"/>
      </handler>
    </phase>
    <phase name="Addressing"/>
    <phase name="Security"/>
    <phase name="PreDispatch"/>
    <phase name="Dispatch" class="org.apache.axis2.engine.DispatchPhase">
      <handler name="service" class="org.apache.ode.axis2.hooks.ODEAxisServiceDispatcher"/>
      <handler name="operation" class="org.apache.ode.axis2.hooks.ODEAxisOperationDispatcher"/>
      <handler name="body" class="org.apache.axis2.dispatchers.SOAPMessageBodyBasedDispatcher"/>
    </phase>
    <phase name="OperationInPhase"/>
  </phaseOrder>
  <phaseOrder type="OutFlow">
    <phase name="OperationOutPhase"/><phase name="PolicyDetermination"/><phase name="MessageOut"/>
    <phase name="Security"/>
  </phaseOrder>
  <phaseOrder type="InFaultFlow">
    <phase name="Addressing"/><phase name="Security"/><phase name="PreDispatch"/>
    <phase name="Dispatch" class="org.apache.axis2.engine.DispatchPhase"/><phase name="OperationInFaultPhase"/>
  </phaseOrder>
  <phaseOrder type="OutFaultFlow">
    <phase name="OperationOutFaultPhase"/><phase name="PolicyDetermination"/><phase name="MessageOut"/>
    <phase name="Security"/>
  </phaseOrder>
</axisconfig>
"""
PROPERTIES = """ode-axis2.db.mode=INTERNAL
ode-axis2.db.int.jdbcurl=jdbc:derby:{folder}/database;create=true
ode-axis2.db.int.driver=org.apache.derby.jdbc.EmbeddedDriver
ode-axis2.db.int.username=sa
ode-axis2.db.int.password=
ode-axis2.db.pool.max=100
"""
TABLES = """connect 'jdbc:derby:{folder}/database;create=true;user=sa';
create table ODE_SCHEMA_VERSION (VERSION integer);
insert into ODE_SCHEMA_VERSION values (6);
create table ODE_JOB (jobid char(64) not null primary key, ts bigint not null, nodeid char(64),
  scheduled integer not null, transacted integer not null, instanceId bigint, mexId varchar(255),
  processId varchar(255), type varchar(255), channel varchar(255), correlatorId varchar(255),
  correlationKeySet varchar(255), retryCount integer, inMem integer, detailsExt blob(65536));
exit;
"""
"""The tables of ODE's scheduler; it makes all others itself."""
LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %c{1} %m%n
log4j.logger.org.apache.ode.axis2.ODEServer=INFO
log4j.logger.org.apache.ode.axis2.deploy=INFO
"""
SERVICE = """<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:t="{0}" targetNamespace="{0}"
    xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/">
  <wsdl:message name="nothing"/>
  {1}
</wsdl:definitions>
"""
PORT = """<wsdl:portType name="{0}">
    <wsdl:operation name="none"><wsdl:input message="t:nothing"/></wsdl:operation>
  </wsdl:portType>
  <wsdl:binding name="{0}Binding" type="t:{0}">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <wsdl:operation name="none"><soap:operation/><wsdl:input><soap:body use="literal"/></wsdl:input></wsdl:operation>
  </wsdl:binding>
  <wsdl:service name="{1}">
    <wsdl:port name="{2}" binding="t:{0}Binding"><soap:address location="http://localhost/processes/{1}"/></wsdl:port>
  </wsdl:service>"""
DEPLOY_API = SERVICE.format(
    "http://www.apache.org/ode/deployapi", PORT.format("Deployment", "DeploymentService", "DeploymentPort")
)
MANAGEMENT_API = SERVICE.format(
    "http://www.apache.org/ode/pmapi",
    PORT.format("ProcessManagement", "ProcessManagementService", "ProcessManagementPort")
    + PORT.format("InstanceManagement", "InstanceManagementService", "InstanceManagementPort"),
)
"""The services that ODE has for its administrators; it does not start without their descriptions."""

DEPLOY_XML = """<deploy xmlns="http://www.apache.org/ode/schemas/dd/2007/03">
  <process xmlns:p="{process[0]}" name="p:{process[1]}"><active>true</active>{links}</process>
</deploy>
"""


def lacking() -> str:
    """What is not on this machine that ODE needs; empty if it can run."""
    return " and ".join(program for program in ("java", "mvn") if shutil.which(program) is None)


class Ode:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._seen_chars = 0

    @property
    def _root(self) -> Path:
        return self.folder / "app" / "WEB-INF"

    def address(self, service: str) -> str:
        return f"http://127.0.0.1:{self.port}/processes/{service}"

    def start(self) -> None:
        if not self._root.exists():
            self._write_settings()
        log = self.folder / "out.log"
        self._seen_chars = len(log.read_text(errors="replace"))
        self._process = launch(self._command(), log=log, cwd=self.folder)
        self._wait()

    def _write_settings(self) -> None:
        conf = self._root / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (self._root / "processes").mkdir(exist_ok=True)
        for name in ("modules", "services"):
            (self._root / name).mkdir(exist_ok=True)
        axis2 = conf / "axis2.xml"
        axis2.write_text(AXIS2_XML.format(port=self.port))
        (self._root / "web.xml").write_text(WEB_XML.format(axis2=axis2))
        (conf / "ode-axis2.properties").write_text(PROPERTIES.format(folder=self.folder))
        (conf / "log4j.properties").write_text(LOG4J)
        (self._root / "deploy.wsdl").write_text(DEPLOY_API)
        (self._root / "pmapi.wsdl").write_text(MANAGEMENT_API)
        tables = self.folder / "tables.sql"
        tables.write_text(TABLES.format(folder=self.folder))
        made = ["java", *JVM, "-cp", f"{fetched_jars(POM)}/*", "org.apache.derby.tools.ij", str(tables)]
        with (self.folder / "out.log").open("ab") as log:
            subprocess.run(made, check=True, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _command(self) -> list[str]:
        opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in OPENS]
        settings = [
            "-Dopenjpa.jdbc.SynchronizeMappings=buildSchema(ForeignKeys=false)",
            f"-Dlog4j.configuration={(self._root / 'conf' / 'log4j.properties').as_uri()}",
            f"-Djava.io.tmpdir={self.folder}",
        ]
        runner = ["org.eclipse.jetty.runner.Runner", "--host", "127.0.0.1", "--port", str(self.port)]
        jars = f"{fetched_jars(POM)}/*"
        return [*dying_with_us(), "java", *JVM, *opened, *settings, "-cp", jars, *runner, str(self.folder / "app")]

    def _wait(self) -> None:
        self._until(lambda: self._said("ODE Service Engine has been started"), "ODE to start")
        self._until(self._listens, "its web server to listen")  # which it does after that

    def _listens(self) -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", self.port)) == 0

    def _said(self, words: str) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log()
        return words in (self.folder / "out.log").read_text(errors="replace")[self._seen_chars :]

    def deploy(self, files: Path, name: str, process: tuple[str, str], links: str) -> None:
        """Deploy the process of a folder, whose name is a qualified one; `links` says where its partner links lead, in
        ODE's words."""
        whole = self.folder / name
        shutil.copytree(files, whole)
        (whole / "deploy.xml").write_text(DEPLOY_XML.format(process=process, links=links))
        whole.rename(self._root / "processes" / name)
        self._until(lambda: self._said(f"Deployment of artifact {name} "), f"ODE to deploy {name}")
        assert self._said(f"Deployment of artifact {name} successful"), self.log()

    def _until(self, true: Callable[[], bool], what: str) -> None:
        end_at = time.monotonic() + START_S
        while not true():
            assert time.monotonic() < end_at, f"waited for {what}\n{self.log()}"
            time.sleep(0.2)

    def log(self) -> str:
        return (self.folder / "out.log").read_text(errors="replace")[-8000:]

    def stop(self, *, kill: bool = False) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, kill=kill)


if __name__ == "__main__":
    print(f"Apache ODE for tests is in {fetched_jars(POM)}")
