"""A parameter study: how an epidemic goes for each pair of a contact rate and a recovery rate, drawn as one picture.

    mendflow run study.py --output-dir results
    mendflow run study.py --output-dir results --input 'contacts=[0.2, 0.3, 0.4, 0.5]'

The second run computes only what is new. Needs numpy and matplotlib."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mendflow import flow, job

DAYS, PEOPLE, TRIALS = 160, 10_000, 20_000
CONTACTS, RECOVERIES = [0.2, 0.3, 0.4], [0.05, 0.1]


@dataclass
class Outbreak:
    contact: float
    recovery: float
    infected: np.ndarray  # the mean number of infected people, by day
    peak: float


@job(memory="60 MB")  # too little for all trials at once: the default rules give it more
def simulate(contact: float, recovery: float) -> Outbreak:
    """Many trials of one outbreak, in which chance decides who infects whom."""
    dice = np.random.default_rng([round(contact * 1000), round(recovery * 1000)])
    healthy = np.full(TRIALS, PEOPLE - 10)
    infected = np.full(TRIALS, 10)
    days = np.empty((DAYS, TRIALS))
    for day in range(DAYS):
        days[day] = infected
        new = dice.binomial(healthy, 1 - np.exp(-contact * infected / PEOPLE))
        healed = dice.binomial(infected, 1 - np.exp(-recovery))
        healthy, infected = healthy - new, infected + new - healed
    centred = np.sort(days, axis=1)[:, TRIALS // 20 : -TRIALS // 20]  # without the luckiest and the unluckiest
    mean = centred.mean(axis=1)
    return Outbreak(contact, recovery, mean, float(mean.max()))


@job
def draw(outbreaks: list[Outbreak]) -> Path:
    figure = Figure(figsize=(11, 4), layout="constrained")
    curves, peaks = figure.subplots(1, 2)
    for each in outbreaks:
        curves.plot(each.infected, label=f"{each.contact:g} / {each.recovery:g}")
    curves.set(xlabel="day", ylabel="infected people", title="contact / recovery rate")
    curves.legend(fontsize="small", ncols=2)
    contacts = sorted({each.contact for each in outbreaks})
    recoveries = sorted({each.recovery for each in outbreaks})
    table = np.zeros((len(recoveries), len(contacts)))
    for each in outbreaks:
        table[recoveries.index(each.recovery), contacts.index(each.contact)] = each.peak
    image = peaks.imshow(table, origin="lower", aspect="auto", cmap="viridis")
    peaks.set_xticks(range(len(contacts)), [f"{each:g}" for each in contacts])
    peaks.set_yticks(range(len(recoveries)), [f"{each:g}" for each in recoveries])
    peaks.set(xlabel="contact rate", ylabel="recovery rate", title="most people infected at once")
    figure.colorbar(image, ax=peaks)
    path = Path("epidemic.png")
    figure.savefig(path, dpi=110)
    return path


@flow
def study(contacts: list = CONTACTS, recoveries: list = RECOVERIES):
    outbreaks = simulate.product(contact=contacts, recovery=recoveries)
    return {"picture": draw(outbreaks), "peaks": job(peaks_of)(outbreaks)}


def peaks_of(outbreaks: list[Outbreak]) -> dict[str, float]:
    return {f"{each.contact:g}/{each.recovery:g}": round(each.peak) for each in outbreaks}


if __name__ == "__main__":
    print(study.run()["peaks"])
