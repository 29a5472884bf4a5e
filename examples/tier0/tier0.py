"""The work of the steps of Tier0, on toy events that are small and behave like real ones.

An event has two tracks, each seen by ten layers of a detector in a magnetic field: a track is bent, and the less so
the more momentum it has. Reconstruction fits a curve to the hits of each track, which gives the momenta and the mass of
what decayed. Calibration takes the events around the peak of the mass, and asks each layer how far it is off."""

import json
import math
import random
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

LAYERS = 10
BENDING = 1.5
"""Curvature times momentum."""
MASS = 91.2
NOISE = 0.002
LAYER_OFF, OFF_BY = 4, 0.05
"""One layer is not where it should be; calibration is to find that."""
PRIMARY = ("muons", "electrons")

Event = dict[str, Any]


def read(path: str | Path) -> Iterator[Event]:
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def write(path: str | Path, events: Iterable[Event]) -> int:
    count = 0
    with open(path, "w", encoding="utf-8") as out:
        for event in events:
            out.write(json.dumps(event, sort_keys=True) + "\n")
            count += 1
    return count


# What the detector does


def take_data(path: str, run: int, first: int, events: int) -> None:
    """Write a streamer file, whole or not at all: whoever watches the folder sees it when it is there."""
    chance = random.Random(f"{run}/{first}")
    draft = Path(path).with_name(f".{Path(path).name}")
    write(draft, (_collision(chance, run, first + number) for number in range(events)))
    draft.rename(path)


def _collision(chance: random.Random, run: int, number: int) -> Event:
    mass = chance.gauss(MASS, 2.5) if chance.random() < 0.8 else chance.uniform(40, 140)
    angle = chance.uniform(0, math.pi)
    tracks = []
    for turned in (0.0, math.pi):
        slope = math.tan((angle + turned) / 8)
        tracks.append([round(_hit(chance, layer, slope, mass / 2), 6) for layer in range(LAYERS)])
    event = {"run": run, "event": number, "trigger": chance.choice(PRIMARY), "hits": tracks}
    return {**event, "crc": _crc(event)}


def _hit(chance: random.Random, layer: int, slope: float, momentum: float) -> float:
    off = OFF_BY if layer == LAYER_OFF else 0.0
    return slope * layer + BENDING / momentum * layer * layer + off + chance.gauss(0, NOISE)


def _crc(event: Event) -> int:
    return zlib.crc32(json.dumps([event["event"], event["trigger"], event["hits"]]).encode())


# The steps


def repack(source: str, *targets: str) -> None:
    """Check every event, and give each to the primary data set that its trigger is for."""
    found: dict[str, list[Event]] = {name: [] for name in PRIMARY}
    for event in read(source):
        if event.pop("crc") != _crc(event):
            sys.exit(f"event {event['event']} of {source} is damaged")
        found[event.pop("trigger")].append(event)
    for name, target in zip(PRIMARY, targets, strict=True):
        print(f"{name}: {write(target, found[name])} events")


def merge(target: str, *sources: str) -> None:
    """One file of many, in the order of their events, each event once."""
    events = {(event["run"], event["event"]): event for source in sources for event in read(source)}
    print(f"{write(target, (events[key] for key in sorted(events)))} events of {len(sources)} files")


def reconstruct(source: str, target: str, part: str, parts: str) -> None:
    """Fit the tracks of every event that belongs to this part of the file."""
    mine = (event for number, event in enumerate(read(source)) if number % int(parts) == int(part))
    print(f"{write(target, map(_reconstructed, mine))} events")


def _reconstructed(event: Event) -> Event:
    fits = [_fit(hits) for hits in event["hits"]]
    momenta = [BENDING / max(abs(bent), 1e-9) for _, bent in fits]
    residuals = [
        [round(hit - slope * layer - bent * layer * layer, 6) for layer, hit in enumerate(hits)]
        for hits, (slope, bent) in zip(event["hits"], fits, strict=True)
    ]
    mass = 2 * math.sqrt(momenta[0] * momenta[1])
    return {"run": event["run"], "event": event["event"], "mass": round(mass, 3), "residuals": residuals}


def _fit(hits: list[float]) -> tuple[float, float]:
    """Slope and curvature of the parabola through the origin that is nearest to the hits, without the worst of them."""
    layers = list(range(LAYERS))
    slope, bent = _nearest(hits, layers)
    layers.remove(max(layers, key=lambda layer: abs(hits[layer] - slope * layer - bent * layer * layer)))
    return _nearest(hits, layers)


def _nearest(hits: list[float], layers: list[int]) -> tuple[float, float]:
    s2, s3, s4 = (sum(layer**power for layer in layers) for power in (2, 3, 4))
    y1, y2 = (sum(hits[layer] * layer**power for layer in layers) for power in (1, 2))
    whole = s2 * s4 - s3 * s3
    return (y1 * s4 - y2 * s3) / whole, (y2 * s2 - y1 * s3) / whole


def calibrate(source: str, target: str) -> None:
    """Of the few events around the peak: how far each layer is from where the tracks say it should be."""
    chosen = [event for event in read(source) if abs(event["mass"] - MASS) < 5]
    sums = [sum(track[layer] for event in chosen for track in event["residuals"]) for layer in range(LAYERS)]
    first = min((event["event"] for event in chosen), default=0)
    found = {"run": 1, "event": first, "tracks": 2 * len(chosen), "sums": [round(each, 6) for each in sums]}
    print(f"{write(target, [found])} line of {len(chosen)} events")


def constants(*sources: str) -> list[float]:
    """How far each layer is off, from all that calibration has found."""
    lines = [line for source in sources for line in read(source)]
    tracks = sum(line["tracks"] for line in lines)
    return [round(sum(line["sums"][layer] for line in lines) / max(tracks, 1), 4) for layer in range(LAYERS)]


STEPS = {"repack": repack, "merge": merge, "reco": reconstruct, "alca": calibrate}

if __name__ == "__main__":
    STEPS[sys.argv[1]](*sys.argv[2:])
