"""The `mendflow` of a warm shell (tests/servers/warm_shell.py): what stands for the real one while that runs.

It is started for each command and loads next to nothing: `_signal` instead of `signal`, which loads enumerations."""

import _signal  # type: ignore[import-not-found]  # the part of signal that is built in has no types
import _socket
import marshal
import os
import sys

PASSED_ON = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2)


def ask(name: str, real: str) -> None:
    """Let the host that listens there run the program, with our words, folder, environment and streams; end as it."""
    line = _socket.socket(_socket.AF_UNIX)
    line.connect("\0" + name)
    ignored = [number for number in PASSED_ON if _signal.getsignal(number) == _signal.SIG_IGN]
    told = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ), ignored))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    line.sendmsg([len(told).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    line.sendall(told)
    for number in PASSED_ON:
        if number not in ignored:
            _signal.signal(number, lambda got, _: line.send(bytes([got])))
    answer = line.recv(4, _socket.MSG_WAITALL)
    if answer == b"cold":
        os.execv(real, [real, *sys.argv[1:]])
    code = int.from_bytes(answer, "big", signed=True) if answer else 1
    if code < 0:
        if -code in PASSED_ON:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
