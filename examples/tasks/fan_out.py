"""As many jobs as are found, four at a time; one in ten may fail, and what the others give is added up."""

from mendflow import flow, job


@job
def find():
    return list(range(1, 21))


@job
def check(number):
    assert number != 7
    return number**2


@job
def add(squares):
    return sum(filter(None, squares))


@flow
def fan_out():
    return add(check.map(find(), tolerate=0.1, max_parallel=4))
