"""The modules beside a flow's functions come as one file: a map from their paths to their contents."""

import os
import threading

import msgspec

_decode = msgspec.msgpack.Decoder(dict[str, bytes]).decode


def unpack_modules(packed: str, folder: str) -> None:
    """Write each module to its place below the folder, as a whole. A path that leads elsewhere is passed over: a flow
    has none, and who makes one up gets nothing."""
    with open(packed, "rb") as source:
        contents = _decode(source.read())
    for path, content in contents.items():
        parts = path.split("/")
        if not path.endswith(".py") or any(part in ("", ".", "..") for part in parts):
            continue
        target = os.path.join(folder, *parts)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        temporary = f"{target}.{threading.get_ident()}.tmp"
        with open(temporary, "wb") as out:
            out.write(content)
        os.replace(temporary, target)
