"""Job descriptions in the manner of the grid systems that write and read them, in words of our own.

Each has the habits of its system: which prefixes it uses, where it puts its extensions, which places it stages from.
`FOLDER` stands for a folder of the test. `told` is the beginning of what is refused, with its line; a document without
it runs, and leaves `output`."""

from typing import NamedTuple

J = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
P = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
HPC = "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa"


class MiddlewareDocument(NamedTuple):
    system: str
    text: str
    told: tuple[str, ...] = ()
    output: str = ""


GRIDSAM = MiddlewareDocument(
    "GridSAM, as a client of it asks to count lines",
    f"""<?xml version="1.0" encoding="UTF-8"?>
<JobDefinition xmlns="{J}">
  <JobDescription>
    <JobIdentification><JobName>counting lines</JobName><JobProject>gridsam</JobProject></JobIdentification>
    <Application>
      <POSIXApplication xmlns="{P}">
        <Executable>/usr/bin/wc</Executable><Argument>-l</Argument><Argument>given.txt</Argument>
        <Output>said.txt</Output><Error>wrong.txt</Error>
      </POSIXApplication>
    </Application>
    <DataStaging>
      <FileName>given.txt</FileName><CreationFlag>overwrite</CreationFlag>
      <DeleteOnTermination>true</DeleteOnTermination>
      <Source><URI>file://FOLDER/given.txt</URI></Source>
    </DataStaging>
    <DataStaging>
      <FileName>said.txt</FileName><CreationFlag>overwrite</CreationFlag>
      <DeleteOnTermination>true</DeleteOnTermination>
      <Target><URI>file://FOLDER/gridsam.txt</URI></Target>
    </DataStaging>
  </JobDescription>
</JobDefinition>""",
    output="gridsam.txt",
)
GRIDWAY = MiddlewareDocument(
    "GridWay, which gives everything a prefix and the rest a name space of nobody's",
    f"""<?xml version="1.0" encoding="UTF-8"?>
<jsdl:JobDefinition xmlns="http://www.example.org/" xmlns:jsdl="{J}" xmlns:jsdl-posix="{P}"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
 <jsdl:JobDescription>
  <jsdl:JobIdentification><jsdl:JobName>gw.7</jsdl:JobName></jsdl:JobIdentification>
  <jsdl:Application>
   <jsdl-posix:POSIXApplication>
    <jsdl-posix:Executable>/bin/sh</jsdl-posix:Executable>
    <jsdl-posix:Argument>-c</jsdl-posix:Argument>
    <jsdl-posix:Argument>echo $GW_JOB_ID</jsdl-posix:Argument>
    <jsdl-posix:Input>/dev/null</jsdl-posix:Input>
    <jsdl-posix:Output>stdout.execution</jsdl-posix:Output>
    <jsdl-posix:Error>stderr.execution</jsdl-posix:Error>
    <jsdl-posix:Environment name="GW_JOB_ID">7</jsdl-posix:Environment>
   </jsdl-posix:POSIXApplication>
  </jsdl:Application>
  <jsdl:DataStaging>
   <jsdl:FileName>stdout.execution</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>
   <jsdl:Target><jsdl:URI>file:FOLDER/gridway.txt</jsdl:URI></jsdl:Target>
  </jsdl:DataStaging>
 </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    output="gridway.txt",
)
UNICORE = MiddlewareDocument(
    "UNICORE 6, which names applications that its sites know",
    f"""<jsdl:JobDefinition xmlns:jsdl="{J}">
  <jsdl:JobDescription>
    <jsdl:JobIdentification><jsdl:JobName>Povray</jsdl:JobName></jsdl:JobIdentification>
    <jsdl:Application>
      <jsdl:ApplicationName>POVRay</jsdl:ApplicationName>
      <jsdl:ApplicationVersion>3.5</jsdl:ApplicationVersion>
    </jsdl:Application>
    <jsdl:DataStaging>
      <jsdl:FileName>scene.pov</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>
      <jsdl:Source><jsdl:URI>u6://DEMO-SITE/Home/scene.pov</jsdl:URI></jsdl:Source>
    </jsdl:DataStaging>
  </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    told=("4: <ApplicationName> cannot be honoured", "10: <URI> of a source cannot be honoured: `u6` is not supported"),
)
UNICORE_RESOURCES = MiddlewareDocument(
    "UNICORE 6, with resources of its sites' own",
    f"""<JobDefinition xmlns="{J}" xmlns:u="http://www.unicore.eu/unicore/jsdl-extensions">
  <JobDescription>
    <Application>
      <POSIXApplication xmlns="{P}"><Executable>/bin/date</Executable></POSIXApplication>
    </Application>
    <Resources>
      <IndividualCPUCount><Exact>2.0</Exact></IndividualCPUCount>
      <u:ResourceRequest><u:Name>Queue</u:Name><u:Value>fast</u:Value></u:ResourceRequest>
    </Resources>
  </JobDescription>
</JobDefinition>""",
    told=("8: <ResourceRequest>",),
)
ARC = MiddlewareDocument(
    "ARC, with its own elements in the middle",
    f"""<JobDefinition xmlns="{J}" xmlns:posix="{P}" xmlns:arc="http://www.nordugrid.org/ws/schemas/jsdl-arc">
  <JobDescription>
    <JobIdentification><JobName>arctest</JobName></JobIdentification>
    <Application>
      <posix:POSIXApplication>
        <posix:Executable>/bin/echo</posix:Executable><posix:Argument>hello</posix:Argument>
        <posix:Output>out.txt</posix:Output>
      </posix:POSIXApplication>
    </Application>
    <Resources>
      <arc:RunTimeEnvironment><arc:Name>ENV/JAVA</arc:Name></arc:RunTimeEnvironment>
    </Resources>
    <arc:LocalLogging><arc:Directory>log</arc:Directory></arc:LocalLogging>
  </JobDescription>
</JobDefinition>""",
    told=("11: <RunTimeEnvironment>", "13: <LocalLogging>"),
)
ARC_STAGING = MiddlewareDocument(
    "ARC, from a GridFTP server and back to it",
    f"""<JobDefinition xmlns="{J}" xmlns:posix="{P}">
  <JobDescription>
    <Application>
      <posix:POSIXApplication><posix:Executable>/bin/cat</posix:Executable><posix:Input>in</posix:Input>
        <posix:Output>out</posix:Output></posix:POSIXApplication>
    </Application>
    <DataStaging><FileName>in</FileName><CreationFlag>overwrite</CreationFlag>
      <Source><URI>gsiftp://se1.example.org:2811/data/in</URI></Source></DataStaging>
    <DataStaging><FileName>out</FileName><CreationFlag>overwrite</CreationFlag>
      <Target><URI>gsiftp://se1.example.org:2811/data/out</URI></Target></DataStaging>
  </JobDescription>
</JobDefinition>""",
    told=("10: <URI> of a target cannot be honoured: gsiftp:// can only be read from",),
)
GFARM = MiddlewareDocument(
    "Gfarm, whose files have a scheme of their own",
    f"""<jsdl:JobDefinition xmlns:jsdl="{J}" xmlns:posix="{P}">
  <jsdl:JobDescription>
    <jsdl:Application><posix:POSIXApplication><posix:Executable>/usr/bin/sort</posix:Executable>
      <posix:Input>words</posix:Input></posix:POSIXApplication></jsdl:Application>
    <jsdl:DataStaging><jsdl:FileName>words</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>
      <jsdl:Source><jsdl:URI>gfarm:///home/ann/words</jsdl:URI></jsdl:Source></jsdl:DataStaging>
  </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    told=("6: <URI> of a source cannot be honoured: `gfarm` is not supported",),
)
BES_HPC = MiddlewareDocument(
    "a BES with the basic HPC profile",
    f"""<jsdl:JobDefinition xmlns:jsdl="{J}" xmlns:hpc="{HPC}">
  <jsdl:JobDescription>
    <jsdl:JobIdentification><jsdl:JobName>basic</jsdl:JobName></jsdl:JobIdentification>
    <jsdl:Application>
      <hpc:HPCProfileApplication name="env">
        <hpc:Executable>/usr/bin/env</hpc:Executable>
        <hpc:Output>env.txt</hpc:Output>
        <hpc:Environment name="COLOUR">green</hpc:Environment>
      </hpc:HPCProfileApplication>
    </jsdl:Application>
    <jsdl:Resources>
      <jsdl:OperatingSystem><jsdl:OperatingSystemType>
        <jsdl:OperatingSystemName>LINUX</jsdl:OperatingSystemName>
      </jsdl:OperatingSystemType></jsdl:OperatingSystem>
      <jsdl:TotalCPUCount><jsdl:Exact>1</jsdl:Exact></jsdl:TotalCPUCount>
      <jsdl:TotalResourceCount><jsdl:Exact>1</jsdl:Exact></jsdl:TotalResourceCount>
    </jsdl:Resources>
    <jsdl:DataStaging>
      <jsdl:FileName>env.txt</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>
      <jsdl:Target><jsdl:URI>file://FOLDER/bes.txt</jsdl:URI></jsdl:Target>
    </jsdl:DataStaging>
  </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    output="bes.txt",
)
BES_USER = MiddlewareDocument(
    "a BES with the basic HPC profile, that runs for another user on several machines",
    f"""<jsdl:JobDefinition xmlns:jsdl="{J}" xmlns:hpc="{HPC}">
  <jsdl:JobDescription>
    <jsdl:Application>
      <hpc:HPCProfileApplication>
        <hpc:Executable>/bin/hostname</hpc:Executable>
        <hpc:UserName>guest</hpc:UserName>
      </hpc:HPCProfileApplication>
    </jsdl:Application>
    <jsdl:Resources>
      <jsdl:ExclusiveExecution>true</jsdl:ExclusiveExecution>
      <jsdl:TotalResourceCount><jsdl:Exact>4</jsdl:Exact></jsdl:TotalResourceCount>
    </jsdl:Resources>
  </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    told=("6: <UserName>", "10: <ExclusiveExecution>", "11: <TotalResourceCount>"),
)
GENESIS = MiddlewareDocument(
    "Genesis II, which stages with a name and a password",
    f"""<JobDefinition xmlns="{J}" xmlns:ac="http://schemas.ogf.org/hpcp/2007/11/ac"
    xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd">
  <JobDescription>
    <JobIdentification><JobName>Genesis Simple</JobName></JobIdentification>
    <Application>
      <POSIXApplication xmlns="{P}"><Executable>/bin/cat</Executable><Argument>in.dat</Argument></POSIXApplication>
    </Application>
    <DataStaging>
      <FileName>in.dat</FileName><CreationFlag>overwrite</CreationFlag>
      <Source><URI>scp://data.example.org/home/ann/in.dat</URI></Source>
      <ac:Credential><w:UsernameToken><w:Username>ann</w:Username>
        <w:Password>op/en</w:Password></w:UsernameToken></ac:Credential>
    </DataStaging>
  </JobDescription>
</JobDefinition>""",
)
GENESIS_MATCHING = MiddlewareDocument(
    "Genesis II, with its matching parameters and RNS paths",
    f"""<JobDefinition xmlns="{J}" xmlns:g="http://vcgr.cs.virginia.edu/jsdl/genii">
  <JobDescription>
    <Application>
      <POSIXApplication xmlns="{P}"><Executable>/bin/ls</Executable></POSIXApplication>
    </Application>
    <Resources><g:MatchingParameter><g:Name>gpu</g:Name><g:Value>true</g:Value></g:MatchingParameter></Resources>
    <DataStaging>
      <FileName>in.dat</FileName><CreationFlag>overwrite</CreationFlag>
      <Source><URI>rns:/home/ann/in.dat</URI></Source>
    </DataStaging>
  </JobDescription>
</JobDefinition>""",
    told=("6: <MatchingParameter>", "9: <URI> of a source cannot be honoured: `rns` is not supported"),
)
XENBEE = MiddlewareDocument(
    "XenBEE, whose jobs bring the machine that they run on",
    f"""<jsdl:JobDefinition xmlns:jsdl="{J}" xmlns:posix="{P}" xmlns:x="http://www.example.com/schemas/xbe/2007/01/xsdl">
  <jsdl:JobDescription>
    <jsdl:JobIdentification><jsdl:JobAnnotation>one</jsdl:JobAnnotation>
      <jsdl:JobAnnotation>two</jsdl:JobAnnotation></jsdl:JobIdentification>
    <jsdl:Application><posix:POSIXApplication><posix:Executable>/bin/ls</posix:Executable>
      <posix:Argument>/</posix:Argument></posix:POSIXApplication></jsdl:Application>
    <jsdl:Resources><x:InstanceDefinition><x:Package/></x:InstanceDefinition></jsdl:Resources>
  </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    told=("7: <InstanceDefinition>",),
)
SWEEP = MiddlewareDocument(
    "a BES that takes parameter sweeps (GFD.149)",
    f"""<JobDefinition xmlns="{J}" xmlns:p="{P}" xmlns:s="http://schemas.ogf.org/jsdl/2009/03/sweep"
    xmlns:f="http://schemas.ogf.org/jsdl/2009/03/sweep/functions">
  <JobDescription>
    <Application><p:POSIXApplication><p:Executable>/bin/sh</p:Executable><p:Argument>-c</p:Argument>
      <p:Argument>echo $N &gt;&gt; FOLDER/sweep.txt</p:Argument>
      <p:Environment name="N">0</p:Environment></p:POSIXApplication></Application>
  </JobDescription>
  <s:Sweep>
    <s:Assignment>
      <s:DocumentNode><s:Match>//p:Environment[@name='N']</s:Match></s:DocumentNode>
      <f:LoopInteger start="2" end="8" step="2"/>
    </s:Assignment>
  </s:Sweep>
</JobDefinition>""",
    output="sweep.txt",
)
MOVE = MiddlewareDocument(
    "a file that is only moved, without a program",
    f"""<jsdl:JobDefinition xmlns:jsdl="{J}">
  <jsdl:JobDescription>
    <jsdl:DataStaging>
      <jsdl:FileName>it</jsdl:FileName><jsdl:CreationFlag>overwrite</jsdl:CreationFlag>
      <jsdl:Source><jsdl:URI>file://FOLDER/given.txt</jsdl:URI></jsdl:Source>
      <jsdl:Target><jsdl:URI>file://FOLDER/moved.txt</jsdl:URI></jsdl:Target>
    </jsdl:DataStaging>
  </jsdl:JobDescription>
</jsdl:JobDefinition>""",
    output="moved.txt",
)
DOCUMENTS = (
    GRIDSAM,
    GRIDWAY,
    UNICORE,
    UNICORE_RESOURCES,
    ARC,
    ARC_STAGING,
    GFARM,
    BES_HPC,
    BES_USER,
    GENESIS,
    GENESIS_MATCHING,
    XENBEE,
    SWEEP,
    MOVE,
)
