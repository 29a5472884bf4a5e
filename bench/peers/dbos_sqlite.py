"""DBOS on SQLite: durable workflows, each started at once; a chain is one workflow of many steps."""

from dbos import DBOS

from bench.subject import CaseReference, Kind, answer
from bench.subject import shell as plain_shell


@DBOS.workflow()
def noop(value: int) -> int:
    return value


@DBOS.step()
def one_step(value: int) -> int:
    return value + 1


@DBOS.workflow()
def shell() -> int:
    return plain_shell()


@DBOS.workflow()
def steps(count: int) -> int:
    value = 0
    for _ in range(count):
        value = one_step(value)
    return value


class DbosSqlite(CaseReference):
    limits = {Kind.PYTHON: 500, Kind.SHELL: 200}

    def start(self) -> None:
        url = f"sqlite:///{self.folder / 'dbos.sqlite'}"
        DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "run_admin_server": False})
        DBOS.launch()
        self.at_end(DBOS.destroy)

    def python(self, jobs: int) -> None:

        for handle in [DBOS.start_workflow(noop, number) for number in range(jobs)]:
            handle.get_result()

    def shell(self, jobs: int) -> None:
        for handle in [DBOS.start_workflow(shell) for _ in range(jobs)]:
            handle.get_result()

    def chain(self, jobs: int) -> None:
        assert steps(jobs) == jobs


if __name__ == "__main__":
    answer(DbosSqlite)
