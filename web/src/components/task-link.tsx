/** What a case waits for a person with, and the way to it. */
import { Link } from "@tanstack/react-router";
import type { CaseView } from "@/api/queries";
import { plural } from "./format";

/** A task's id is `CASE/SERIAL`. */
export function placeOf(task: string): { case: string; serial: string } {
  const at = task.lastIndexOf("/");
  return { case: task.slice(0, at), serial: task.slice(at + 1) };
}

/** What is said of a case that waits for user tasks; empty if it waits for none. */
export function waitsForPerson(view: Pick<CaseView, "tasks" | "tasks_open">): string {
  const [first] = view.tasks;
  if (!first) return "";
  return `waits for a person: ${first.title}${view.tasks_open > 1 ? ` and ${plural(view.tasks_open - 1, "more task", "more tasks")}` : ""}`;
}

/** The same with links: the first task, and the worklist of the case for the others. */
export function WaitsForPerson({ view }: { view: Pick<CaseView, "id" | "tasks" | "tasks_open"> }) {
  const [first] = view.tasks;
  if (!first) return null;
  const more = view.tasks_open - 1;
  return (
    <span title={waitsForPerson(view)}>
      waits for a person:{" "}
      <Link to="/worklist/$case/$serial" params={placeOf(first.id)}>
        {first.title}
      </Link>
      {more > 0 && (
        <>
          {" "}
          and{" "}
          <Link to="/worklist" search={first.case === view.id ? { case: view.id } : {}}>
            {plural(more, "more task", "more tasks")}
          </Link>
        </>
      )}
    </span>
  );
}
