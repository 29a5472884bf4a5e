"""All combinations of ten values with ten, and the best of the results, in Prefect."""

from itertools import product

from prefect import flow, task


@task
def simulate(x, y):
    return x * y


@flow
def sweep():
    return max(simulate.map(*zip(*product(range(10), range(10)), strict=True)).result())


if __name__ == "__main__":
    print(sweep())
