/** What people are asked to do. */
import { personText } from "@/components/person-text";
import { useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { casesByIdQueries, type CaseView } from "@/api/queries";
import { useMe } from "@/api/session";
import { CaseInputs } from "@/components/case-inputs";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Tabs } from "@/components/tabs";
import { placeOf } from "@/components/task-link";
import { Time, useNowText } from "@/components/time";
import { askedQuery, byUrgency, isOpen, worklistQuery, type AskedTask, type Task } from "./queries";
import "@/styles/resources.css";

const route = getRouteApi("/worklist");

/** Whether a deadline is near or over, and the word for it. */
export function Deadline({ at }: { at: number }) {
  const near = useNowText((now) => (at && at < now ? "over" : at && at - now < 3_600_000 ? "near" : ""));
  if (!at) return null;
  return (
    <span className={near ? "deadline pressing" : "deadline"}>
      <Icon name="schedules" size={12} />
      {near === "over" ? "was due " : "due "}
      <Time at={at} />
    </span>
  );
}

/** What each case of these tasks works on, in short: tasks of one title are told apart by it. */
function useGiven(tasks: readonly { case: string }[]): Record<string, CaseView> {
  const ids = [...new Set(tasks.map((task) => task.case))].sort();
  return useQueries({ queries: casesByIdQueries(ids), combine: (found) => Object.fromEntries(found.flatMap((each) => each.data ?? []).map((view) => [view.id, view])) });
}

function TaskRow({ task, given }: { task: Task; given: CaseView | undefined }) {
  const mine = useMe()?.name === task.claimed_by;
  return (
    <li className="task-row">
      <Link to="/worklist/$case/$serial" params={placeOf(task.id)} className="task-link">
        <span className="task-title">
          {task.title || task.item} {given && <CaseInputs view={given} />}
        </span>
        <span className="task-facts">
          <StateBadge of={task.state} word={task.state === "claimed" ? (mine ? "claimed by you" : `claimed by ${personText(task.claimed_by)}`) : task.state === "offered" ? "nobody has taken it" : task.state} />
          <span className="chip">{task.role || "anybody"}</span>
          {isOpen(task) ? <Deadline at={task.deadline} /> : <span>by {personText(task.ended_by) || "the system"}</span>}
          <span className="muted task-of">
            {task.case} · {task.item}
          </span>
          <span className="spread" />
          <Time at={isOpen(task) ? task.offered_at : task.ended_at} />
        </span>
      </Link>
      <Icon name="right" size={14} />
    </li>
  );
}

function AskedRow({ task, given }: { task: AskedTask; given: CaseView | undefined }) {
  const facts = (
    <>
      <span className="task-title">
        {task.scenario} {given && <CaseInputs view={given} />}
      </span>
      <span className="task-facts">
        <StateBadge state="person" word={task.kind} />
        <span>asked by {personText(task.asked_by)}</span>
        <span className="muted task-of">
          {task.case}
          {task.item && ` · ${task.item}`}
        </span>
        <span className="spread" />
        <Time at={task.asked_at} />
      </span>
    </>
  );
  return (
    <li className="task-row">
      {task.group ? (
        <Link to="/failures/$group" params={{ group: task.group }} search={{ decision: task.id }} className="task-link">
          {facts}
        </Link>
      ) : (
        <Link to="/cases/$case" params={{ case: task.case }} search={{ view: "items", item: task.item ?? undefined }} className="task-link">
          {facts}
        </Link>
      )}
      <Icon name="right" size={14} />
    </li>
  );
}

const NONE: Record<string, [string, string]> = {
  open: ["Nothing to do", "When a flow reaches a step for a person, its task appears here by itself. In a flow, user-task: makes one."],
  mine: ["You have claimed no task", "Open a task and claim it: then others see that you are at it."],
  failures: ["Nobody is asked about a failure", "A failure that no rule takes up, in a flow that holds its cases, stands here until somebody teaches a rule or mends it."],
  ended: ["No task has ended yet", "Tasks that were completed, rejected or not done in time are kept here."],
};

function lead(tasks: number, failures: number): string {
  const said = [tasks && `${plural(tasks, "task")} to be done`, failures && `${plural(failures, "failure")} to decide`].filter(Boolean);
  return said.join(", ") || "Nothing waits for a person";
}

export default function WorklistPage() {
  const { show = "open", role, case: ofCase } = route.useSearch();
  const navigate = route.useNavigate();
  const me = useMe();
  const query = useQuery(worklistQuery({ role, case: ofCase }));
  const asked = useQuery(askedQuery({ case: ofCase }));
  const all = query.data ?? [];
  const parts: Record<string, Task[]> = {
    open: all.filter(isOpen).sort(byUrgency),
    mine: all.filter((task) => task.state === "claimed" && task.claimed_by === me?.name).sort(byUrgency),
    ended: all.filter((task) => !isOpen(task)).sort((one, other) => other.ended_at - one.ended_at),
  };
  const counts: Record<string, number> = { failures: asked.data?.length ?? 0, ...Object.fromEntries(Object.entries(parts).map(([id, tasks]) => [id, tasks.length])) };
  const roles = [...new Set([...all.map((task) => task.role), ...(role ? [role] : [])])].filter(Boolean).sort();
  const given = useGiven(show === "failures" ? (asked.data ?? []) : (parts[show] ?? []));
  const [title, text] = NONE[show] ?? ["", ""];
  return (
    <Page
      title="Worklist"
      lead={query.data && lead(parts["open"]?.length ?? 0, counts["failures"] ?? 0)}
      actions={
        <>
          {ofCase && (
            <button type="button" className="chip" onClick={() => void navigate({ search: (before) => ({ ...before, case: undefined }) })}>
              of {ofCase} <Icon name="close" size={12} />
            </button>
          )}
          {roles.length > 0 && (
            <label className="row">
              <span className="muted">Role</span>
              <select aria-label="Role" value={role ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, role: event.target.value || undefined }) })}>
                <option value="">all</option>
                {roles.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </label>
          )}
        </>
      }
    >
      <Tabs
        label="Which tasks"
        current={show}
        tabs={(["open", "mine", "failures", "ended"] as const).map((id) => ({
          id,
          label: { open: "To do", mine: "Mine", failures: "Failures", ended: "Ended" }[id],
          count: counts[id] ?? 0,
          link: { to: "/worklist", search: (before) => ({ ...before, show: id }) },
        }))}
      />
      {show === "failures" && (
        <Loaded query={asked}>
          {(tasks) =>
            tasks.length ? (
              <ul className="task-list">
                {tasks.map((task) => (
                  <AskedRow key={task.id} task={task} given={given[task.case]} />
                ))}
              </ul>
            ) : (
              <EmptyState title={title} icon="worklist">
                {text}
              </EmptyState>
            )
          }
        </Loaded>
      )}
      {show !== "failures" && <Loaded query={query}>
        {() =>
          parts[show]?.length ? (
            <ul className="task-list">
              {parts[show].map((task) => (
                <TaskRow key={task.id} task={task} given={given[task.case]} />
              ))}
            </ul>
          ) : (
            <EmptyState title={title} icon="worklist">
              {role ? `No task of the role ${role} is among these. ` : ""}
              {text}
            </EmptyState>
          )
        }
      </Loaded>}
    </Page>
  );
}
