"""What is good enough waits for a person, two hours at most; the rest is discarded."""

from mendflow import flow, job, shell, task


@job
def measure(quality):
    return quality


@flow
def approval(quality: int = 7):
    measured = measure(quality)
    approved = task("Publish?", role="editor", deadline="2 h", when=measured > 5)
    shell("echo published", needs=[approved], name="publish")
    shell("echo discarded", when=measured <= 5, name="discard")
