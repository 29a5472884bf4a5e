"""What to write so that a loop over several jobs gives what is asked of one of them.

A loop over one job, or over steps, collects what that job, or the last step, leaves. Of several jobs only the flow can
say which is meant: by `collect:`, which makes the list `jobs.LOOP.outputs`."""

from collections.abc import Iterator, Mapping

from mendflow.core.engine.activity_parts import parts_of
from mendflow.core.model.flow import Activity, ActivityNode, ForEach, JobActivity, Stage


def jobs_inside(loop: ForEach) -> dict[str, ActivityNode]:
    """The jobs of an iteration that people have named, without those of loops inside it."""
    return {each.name: each for each in _inside(loop.body) if "." not in each.name}


def _inside(activity: Activity) -> Iterator[ActivityNode]:
    if isinstance(activity, (JobActivity, Stage, ForEach)):
        yield activity
    if not isinstance(activity, ForEach):
        for part in parts_of(activity):
            yield from _inside(part)


def loop_around(name: str, activities: Mapping[str, ActivityNode]) -> ForEach | None:
    """The loop that has this job in each of its iterations; None if there is none, or if it is itself in a loop."""
    loops = [each for each in activities.values() if isinstance(each, ForEach)]
    found = next((each for each in loops if name in jobs_inside(each)), None)
    if found is None or any(found.name in jobs_inside(each) for each in loops):
        return None
    return found


def collect_hint(loop: ForEach, members: tuple[str, ...]) -> str:
    """What to write in the loop and where it is asked for; empty if no job inside leaves such a thing. `members` are
    what is asked of the loop, with or without the name of a job inside it."""
    path = _path_of(jobs_inside(loop), members)
    if not path:
        return ""
    outputs = f"`${{{{ jobs.{loop.name}.outputs }}}}`"
    collect = f'collect: "${{{{ {path} }}}}"'
    own = "" if loop.collect is None or "`" in loop.collect.text else loop.collect.text.strip()  # `: not the file's
    if loop.collect_map or own:
        more = "" if own == path else f"; for this write `{collect}` there"
        return f"the loop `{loop.name}` gives what its `collect:` says, as the list {outputs}{more}"
    element = ", ".join(f"{name}: ..." for name in (loop.axes or (loop.variable,)))
    return (
        f"the loop `{loop.name}` has several jobs inside, and `collect:` says what it gives of them: write"
        f" `for-each: {{{element}, {collect}}}` there, and {outputs} here"
    )


def _path_of(jobs: Mapping[str, ActivityNode], members: tuple[str, ...]) -> str:
    """`jobs.NAME.files.FILE`, or `jobs.NAME.outputs`, of the job that is most likely meant."""
    files = {name: tuple(job.files) for name, job in jobs.items() if isinstance(job, (JobActivity, Stage))}
    place = next((at for at, word in enumerate(members) if word in jobs), None)
    if place is not None:
        name, asked = members[place], members[place + 1 :]
    else:
        asked = members
        having = [each for each, known in files.items() if asked[:1] == ("files",) and asked[1:2] and asked[1] in known]
        leaving = having or [each for each, known in files.items() if known and asked[:1] != ("outputs",)]
        name = (leaving or list(jobs) or [""])[-1]
    if not name or (asked[:1] == ("files",) and not files.get(name)):
        return ""
    if asked[:1] == ("outputs",):
        return ".".join(("jobs", name, *asked))
    known = files.get(name, ())
    file = asked[1] if asked[:1] == ("files",) and asked[1:2] and asked[1] in known else next(iter(known), "")
    return f"jobs.{name}.files.{file}" if file else f"jobs.{name}.outputs"
