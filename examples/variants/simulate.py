"""Make a reference and reads of samples whose variants are known: `python simulate.py data first second third`.

The reads are random pieces of the reference with the variants of their sample in it and a wrong letter now and then, as
a sequencer makes them. `truth.txt` says which variants each sample has. The same names give the same files."""

import random
import sys
from pathlib import Path

LETTERS = "ACGT"
LENGTH, READ, DEPTH, VARIANTS, ERRORS = 50_000, 100, 30, 40, 0.002


def reference() -> str:
    return "".join(random.Random("reference").choices(LETTERS, k=LENGTH))


def variants_of(sample: str, genome: str) -> dict[int, str]:
    """Where the sample differs from the reference, counted from 0, and by which letter."""
    dice = random.Random(f"variants of {sample}")
    places = dice.sample(range(READ, LENGTH - READ), VARIANTS)
    return {place: dice.choice([each for each in LETTERS if each != genome[place]]) for place in sorted(places)}


def reads_of(sample: str, genome: str) -> str:
    own = list(genome)
    for place, letter in variants_of(sample, genome).items():
        own[place] = letter
    dice, lines = random.Random(f"reads of {sample}"), []
    for number in range(LENGTH * DEPTH // READ):
        start = dice.randrange(LENGTH - READ)
        read = "".join(dice.choice(LETTERS) if dice.random() < ERRORS else each for each in own[start : start + READ])
        lines.append(f"@{sample}.{number}\n{read}\n+\n{'I' * READ}\n")
    return "".join(lines)


def main(folder: Path, samples: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    genome = reference()
    (folder / "reference.fa").write_text(f">chromosome\n{genome}\n")
    for sample in samples:
        (folder / f"{sample}.fq").write_text(reads_of(sample, genome))
        told = [f"{place + 1} {genome[place]} {letter}\n" for place, letter in variants_of(sample, genome).items()]
        (folder / f"{sample}.truth.txt").write_text("".join(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
