/** One task for a person: what it is about, the form that it asks for, and what can be done with it. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask } from "@/api/client";
import { caseQuery, whyQuery } from "@/api/queries";
import { useMayAll, useMe } from "@/api/session";
import { useAct } from "@/components/acts";
import { CaseInputs, effectiveInputs, InputsTree } from "@/components/case-inputs";
import { JsonTree } from "@/components/json-tree";
import { Facts, Page, Panel } from "@/components/page";
import { StateBadge, StateIcon } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { placeOf } from "@/components/task-link";
import { Time } from "@/components/time";
import { isApproval } from "@/components/typed-values";
import { Word } from "@/components/word";
import { Deadline } from "../worklist/page";
import { apiPlace, byUrgency, isOpen, taskQuery, worklistQuery, type Task } from "../worklist/queries";
import { StepsBefore } from "./steps-before";
import { TaskForm } from "./task-form";
import "@/styles/resources.css";

const route = getRouteApi("/worklist/$case/$serial");

const IS_OVER: Record<string, string> = {
  completed: "How it ended",
  rejected: "This task was rejected, so its step failed. What happens then is up to the flow.",
  expired: "Nobody did this task in time: its step failed.",
  withdrawn: "This task is not wanted any more: its case went on without it or was stopped.",
};

function shown(value: unknown): boolean {
  return value !== null && value !== undefined && !(typeof value === "object" && Object.keys(value).length === 0);
}

function NextTask({ after }: { after: string }) {
  const tasks = useQuery(worklistQuery({})).data ?? [];
  const next = tasks.filter((task) => isOpen(task) && task.id !== after).sort(byUrgency)[0];
  const given = useQuery({ ...caseQuery(next?.case ?? ""), enabled: Boolean(next) }).data;
  return (
    <div className="row wrap">
      {next && (
        <Link to="/worklist/$case/$serial" params={placeOf(next.id)} className="button primary wraps">
          Next task: {next.title || next.item}, {next.case}
        </Link>
      )}
      {given && <CaseInputs view={given} />}
      <Link to="/worklist" className="button">
        To the worklist
      </Link>
    </div>
  );
}

function Ended({ task }: { task: Task }) {
  return (
    <Panel title={IS_OVER[task.state]}>
      <div className="stack">
        <Facts
          facts={[
            ["Answer", task.state === "completed" && !shown(task.outputs) && (isApproval(task) ? "approved" : "done")],
            ["By", personText(task.ended_by)],
            ["When", <Time key="at" at={task.ended_at} />],
            ["Comment", task.comment],
          ]}
        />
        {shown(task.outputs) && <JsonTree value={task.outputs} label="What was answered" />}
        <NextTask after={task.id} />
      </div>
    </Panel>
  );
}

function Claim({ task }: { task: Task }) {
  const me = useMe();
  const may = useMayAll();
  const act = useAct("worklist");
  const path = apiPlace(task.id);
  const mine = task.state === "claimed" && task.claimed_by === me?.name;
  return (
    <>
      {task.state === "offered" && may("claim") && (
        <>
          <span className="muted">Claim keeps others from answering it; not needed.</span>
          <button type="button" className="button" onClick={() => void act(() => ask(api.POST("/api/v1/worklist/{case}/{serial}/claim", { params: { path } })), "It is yours now")}>
            Claim
          </button>
        </>
      )}
      {task.state === "claimed" && may("release") && (
        <button type="button" className="button" onClick={() => void act(() => ask(api.POST("/api/v1/worklist/{case}/{serial}/release", { params: { path } })), "Others can claim it again")}>
          {mine ? "Release" : `Release for ${personText(task.claimed_by)}`}
        </button>
      )}
    </>
  );
}

/** What the case works on: often what is to be decided about. */
function GivenToCase({ caseId }: { caseId: string }) {
  const view = useQuery(caseQuery(caseId)).data;
  if (!view || !shown(effectiveInputs(view))) return null;
  return (
    <Panel title="What the case was given">
      <InputsTree view={view} label="Inputs of the case" open={2} of={view.id} />
    </Panel>
  );
}

const TOLD = [
  { begins: "incomplete: ", word: "Incomplete", label: "What is incomplete", icon: "failed" },
  { begins: "mended: ", word: "Mended", label: "What was mended", icon: "done" },
] as const;

/** What was made without something that failed, or otherwise than the flow says: whoever decides about it has to know. */
function HowItWasMade({ caseId }: { caseId: string }) {
  const facts = useQuery(whyQuery(caseId)).data?.facts ?? [];
  return TOLD.map(({ begins, word, label, icon }) => {
    const told = facts.filter((each) => each.startsWith(begins)).map((each) => each.slice(begins.length));
    return told.length > 0 && (
      <div key={begins} className="notice task-first" role="note" aria-label={label}>
        <StateIcon state={icon} />
        <ul className="stack tight plain-list">
          {told.map((each) => (
            <li key={each}>{word}: {each}</li>
          ))}
        </ul>
      </div>
    );
  });
}

function TaskView({ task }: { task: Task }) {
  const me = useMe();
  const may = useMayAll();
  const mine = task.state === "claimed" && task.claimed_by === me?.name;
  const others = task.state === "claimed" && !mine;
  return (
    <Page
      title={task.title || task.item}
      crumbs={<Link to="/worklist">Worklist</Link>}
      lead={
        <span className="row wrap">
          <StateBadge of={task.state} word={task.state === "claimed" ? (mine ? "claimed by you" : `claimed by ${personText(task.claimed_by)}`) : task.state === "offered" ? "nobody has taken it" : undefined} />
          {isOpen(task) && <Deadline at={task.deadline} />}
        </span>
      }
      actions={<Claim task={task} />}
    >
      <div className="task-columns">
        <div className="stack">
          {task.description && <p className="task-description task-first">{task.description}</p>}
          <HowItWasMade caseId={task.case} />
          {!isOpen(task) ? (
            <Ended task={task} />
          ) : may("complete") ? (
            <TaskForm task={task} warning={others ? `${personText(task.claimed_by)} has claimed it. Release it first, or leave it to them.` : ""} />
          ) : (
            <Panel>
              <p>Somebody with the role {task.role || "of this task"} answers here. You may look, and not answer.</p>
            </Panel>
          )}
        </div>
        <div className="stack">
          {shown(task.data) && (
            <Panel title="What it is about" className="task-about">
              <JsonTree value={task.data} label="What it is about" of={task.case} />
            </Panel>
          )}
          <StepsBefore caseId={task.case} item={task.item} />
          <GivenToCase caseId={task.case} />
          <Panel title="Where it comes from">
            <Facts
              facts={[
                ["Case", <Link key="case" to="/cases/$case" params={{ case: task.case }}>{task.case}</Link>],
                ["Step", <Link key="item" to="/cases/$case" params={{ case: task.case }} search={{ view: "items", item: task.item }}>{task.item}</Link>],
                ["Role", task.role],
                ["State", isOpen(task) && (task.state === "offered" ? <Word key="state" of="offered">nobody has taken it yet</Word> : task.state)],
                ["Asked", <Time key="at" at={task.offered_at} />],
                ["Due", task.deadline && isOpen(task) ? <Time key="due" at={task.deadline} /> : ""],
              ]}
            />
          </Panel>
        </div>
      </div>
    </Page>
  );
}

export default function UserTaskPage() {
  const place = route.useParams();
  const query = useQuery(taskQuery(place));
  if (query.isError && !query.data) {
    return (
      <Page title="Task" crumbs={<Link to="/worklist">Worklist</Link>}>
        <EmptyState title="There is no such task" icon="worklist" action={<Link to="/worklist" className="button">To the worklist</Link>}>
          {query.error.message}
        </EmptyState>
      </Page>
    );
  }
  return query.data ? (
    <TaskView key={query.data.id} task={query.data} />
  ) : (
    <Page title="Task">
      <Loaded query={query}>{() => null}</Loaded>
    </Page>
  );
}
