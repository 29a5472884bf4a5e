"""All combinations of ten values with ten, and the best of the results."""

from mendflow import flow, job


@job
def simulate(x, y):
    return x * y


@flow
def sweep():
    return job(max)(simulate.product(range(10), range(10)))
