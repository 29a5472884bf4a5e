"""The words of JSDL 1.0 and its application extensions, and why some are not supported."""

from typing import Final

JSDL: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
HPC: Final = "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa"
SPMD: Final = "http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd"
SWEEP: Final = "http://schemas.ogf.org/jsdl/2009/03/sweep"
SWEEP_FUNCTIONS: Final = "http://schemas.ogf.org/jsdl/2009/03/sweep/functions"
CREDENTIAL: Final = ("http://schemas.ogf.org/hpcp/2007/11/ac", "http://schemas.ogf.org/hpcp/2007/01/fs")
"""The namespaces in which documents of the HPC profile have a <Credential>."""

WSS: Final = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
GRIDSAM_MPI: Final = "urn:gridsam:mpi"
SCHEMA_INSTANCE: Final = "http://www.w3.org/2001/XMLSchema-instance"
XML: Final = "http://www.w3.org/XML/1998/namespace"
PREFIXES: Final = {JSDL: "jsdl", POSIX: "jsdl-posix", HPC: "jsdl-hpcpa", SPMD: "jsdl-spmd", SWEEP: "sweep"}

MANY: Final = 1 << 30
"""How often an element may stand that may stand as often as anybody likes."""

RANGES: Final = (
    "IndividualCPUCount",
    "TotalCPUCount",
    "IndividualPhysicalMemory",
    "TotalPhysicalMemory",
    "IndividualDiskSpace",
    "TotalDiskSpace",
    "TotalResourceCount",
)
_BY_THE_CLOCK: Final = "pilots give time by the clock: say WallTimeLimit, and CPUTimeLimit to bound a process"
_PHYSICAL: Final = "pilots know physical memory only: say IndividualPhysicalMemory; VirtualMemoryLimit bounds a process"
REFUSED_RESOURCES: Final = {
    "IndividualCPUSpeed": "pilots do not tell how fast they are: say CPUArchitecture, or name the hosts",
    "IndividualCPUTime": _BY_THE_CLOCK,
    "TotalCPUTime": _BY_THE_CLOCK,
    "IndividualNetworkBandwidth": "pilots do not tell how fast their lines are: name hosts with CandidateHosts",
    "IndividualVirtualMemory": _PHYSICAL,
    "TotalVirtualMemory": _PHYSICAL,
}
_OWN_USER: Final = "a pilot runs jobs as its own user: leave it away, or start a pilot as that user and name its host"
REFUSED_POSIX: Final = {
    "PipeSizeLimit": "systems do not let anybody set how large pipes are: leave it away",
    "ThreadCountLimit": "systems count threads as processes: say ProcessCountLimit",
    "UserName": _OWN_USER,
    "GroupName": _OWN_USER,
}
LIMITS: Final = {
    "FileSizeLimit": "file_bytes",
    "OpenDescriptorsLimit": "open_files",
    "ProcessCountLimit": "processes",
    "CPUTimeLimit": "cpu_ms",
    "StackSizeLimit": "stack_bytes",
    "DataSegmentLimit": "data_bytes",
    "LockedMemoryLimit": "locked_bytes",
    "VirtualMemoryLimit": "virtual_bytes",
    "CoreDumpLimit": "core_bytes",
}
"""Each limit of a process and its name in the model. The one of time is in seconds here, and in milliseconds there."""

SYSTEMS: Final = {
    "LINUX": "linux",
    "MACOS": "darwin",
    "FreeBSD": "freebsd",
    "OpenBSD": "openbsd",
    "NetBSD": "netbsd",
    "Solaris": "sunos",
    "SunOS": "sunos",
    "AIX": "aix",
}
"""Systems that pilots run on. The words of JSDL are those of CIM."""

OTHER_SYSTEMS: Final = frozenset(
    (
        "Unknown", "ATTUNIX", "DGUX", "DECNT", "Tru64_UNIX", "OpenVMS", "HPUX", "MVS", "OS400", "OS_2", "JavaVM",
        "MSDOS", "WIN3x", "WIN95", "WIN98", "WINNT", "WINCE", "NCR3000", "NetWare", "OSF", "DC_OS", "Reliant_UNIX",
        "SCO_UnixWare", "SCO_OpenServer", "Sequent", "IRIX", "U6000", "ASERIES", "TandemNSK", "TandemNT", "BS2000",
        "Lynx", "XENIX", "VM", "Interactive_UNIX", "BSDUNIX", "GNU_Hurd", "OS9", "MACH_Kernel", "Inferno", "QNX",
        "EPOC", "IxWorks", "VxWorks", "MiNT", "BeOS", "HP_MPE", "NextStep", "PalmPilot", "Rhapsody", "Windows_2000",
        "Dedicated", "OS_390", "VSE", "TPF", "Windows_R_Me", "Caldera_Open_UNIX", "Not_Applicable", "Windows_XP",
        "z_OS", "other",
    )
)  # fmt: skip
MACHINES: Final = ("sparc", "powerpc", "x86", "x86_32", "x86_64", "parisc", "mips", "ia64", "arm")
"""The same words as ours."""

FLAGS: Final = ("overwrite", "dontOverwrite", "append")
FILE_SYSTEM_TYPES: Final = ("swap", "temporary", "spool", "normal")
