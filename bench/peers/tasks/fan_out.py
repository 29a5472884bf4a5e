"""As many jobs as are found, four at a time; one in ten may fail, and what the others give is added up: in Prefect."""

from prefect import flow, task
from prefect.task_runners import ThreadPoolTaskRunner


@task
def find():
    return list(range(1, 21))


@task
def check(number):
    assert number != 7
    return number**2


@flow(task_runner=ThreadPoolTaskRunner(max_workers=4))
def fan_out():
    futures = check.map(find())
    futures.wait()
    good = [each.result() for each in futures if each.state.is_completed()]
    assert len(good) >= 0.9 * len(futures)
    return sum(good)


if __name__ == "__main__":
    print(fan_out())
