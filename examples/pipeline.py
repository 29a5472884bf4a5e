"""The words of a text, counted in parallel. Run it with `mendflow run examples/pipeline.py`."""

from mendflow import flow, job


@job
def split(text: str) -> list[str]:
    return text.split(".")


@job(retries=2)
def count(sentence: str) -> int:
    return len(sentence.split())


@job
def add(counts: list[int]) -> dict[str, int]:
    return {"words": sum(counts), "sentences": len(counts)}


@flow
def pipeline(text: str = "It was a dark night. The queue was long. Nothing was lost") -> dict[str, int]:
    """Count the words of a text, sentence by sentence."""
    counts = count.map(split(text))
    return add(counts)
