import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { lazy, startTransition, Suspense, useCallback, useDeferredValue, useEffect, useState } from "react";
import { caseFlowFileQuery, caseQuery, laterRunQuery, whyQuery, type CaseView } from "@/api/queries";
import { useMayAll } from "@/api/session";
import { caseState, wordOf } from "@/api/states";
import { useKeys } from "@/app/keys";
import { usePhone } from "@/app/screen-widths";
import { ActionRow } from "@/components/action-buttons";
import { caseAction, goTo, type Action } from "@/components/actions";
import { CaseActDialog } from "@/components/case-act-dialog";
import { CASE_ACTS, labelFor, type CaseAct } from "@/components/case-acts";
import { CaseInputs } from "@/components/case-inputs";
import { CaseProgress, FailedItems, failedText, itemsBegun } from "@/components/case-progress";
import { CopyButton } from "@/components/copy-button";
import { WithDetails } from "@/components/drawer";
import { Menu } from "@/components/menu";
import { NewerFlow } from "@/components/newer-flow";
import { Page } from "@/components/page";
import { ErrorState, Loading } from "@/components/states-of-page";
import { StateBadge, StateIcon } from "@/components/state-badge";
import { Tabs } from "@/components/tabs";
import { WaitsForPerson } from "@/components/task-link";
import { Duration, Time } from "@/components/time";
import { Why } from "@/components/why";
import { standsStill } from "../cases/waiting-reasons";
import { EditFlow } from "./edit-flow";
import { exletOfNode } from "./queries";
import { VIEWS, type View } from "./search";
import { TeachAct, useFailuresToTeach } from "./to-teach";
import { ToldNotice } from "./told-notice";
import { TriedInVain } from "./tried-in-vain";
import "./case.css";

const ItemDetails = lazy(() => import("./item-details"));
const ExletDetails = lazy(() => import("./exlet-details"));
const GraphView = lazy(() => import("./graph-view"));
const TimelineView = lazy(() => import("./timeline-view"));
const ItemsView = lazy(() => import("./items-view"));
const HistoryView = lazy(() => import("./history-view"));
const DataView = lazy(() => import("./data-view"));
const MessagesView = lazy(() => import("./messages-view"));
const CompareView = lazy(() => import("./compare-view"));
const FlowFile = lazy(() => import("@/components/flow-file"));

const route = getRouteApi("/cases/$case");
const LATE_MS = 300;

const WORDS: Record<View, string> = { graph: "Graph", timeline: "Timeline", items: "Items", history: "History", data: "Inputs and outputs", messages: "Messages", compare: "Compare", file: "Flow file" };

/** Whether what was drawn is on the screen: what takes long to load or to draw comes after it. */
function usePainted(): boolean {
  const [painted, setPainted] = useState(false);
  useEffect(() => {
    let later: ReturnType<typeof setTimeout> | undefined;
    const frame = requestAnimationFrame(() => {
      later = setTimeout(() => startTransition(() => setPainted(true)), 0);
    });
    return () => {
      cancelAnimationFrame(frame);
      clearTimeout(later);
    };
  }, []);
  return painted;
}

/** On a phone the drawing is loaded when the words above it are there to be read; elsewhere it is loaded with the page. */
function GraphAfterText({ id }: { id: string }) {
  return usePainted() ? <GraphView id={id} /> : <Loading lines={6} />;
}

export default function CasePage() {
  const { case: id } = route.useParams();
  const { view = "graph", item, node } = route.useSearch();
  const navigate = route.useNavigate();
  const phone = usePhone();
  const may = useMayAll();
  const query = useQuery(caseQuery(id));
  // What stands above all the rest, which would move if it came later.
  const why = useQuery(whyQuery(id));
  const toTeach = useFailuresToTeach(query.data);
  const isLate = useIsLate(toTeach === undefined);
  const close = useCallback(() => void navigate({ search: (before) => ({ ...before, item: undefined, node: undefined, line: undefined }) }), [navigate]);
  useKeys(
    "Case",
    VIEWS.map((each, at) => ({ keys: String(at + 1), does: WORDS[each], run: () => void navigate({ search: (before) => ({ ...before, view: each }) }) })),
  );
  // Drawn in small parts, between which the page answers.
  const isWhole = useDeferredValue(query.data !== undefined && !why.isPending && (toTeach !== undefined || isLate));
  if (!query.data || !isWhole) {
    return (
      <Page key="coming" title={id} crumbs={<Link to="/cases">Cases</Link>}>
        {query.isError ? <ErrorState error={query.error} again={() => void query.refetch()} /> : <Loading lines={8} />}
      </Page>
    );
  }
  const data = query.data;
  const offered = firstAct(data, may);
  const exlet = view === "graph" && !item ? exletOfNode(node) : null;
  const details = item ? <ItemDetails key={item} caseId={data.id} item={item} onClose={close} /> : exlet && <ExletDetails key={node} caseId={data.id} {...exlet} onClose={close} />;
  return (
    <Page
      title={data.id}
      fill
      crumbs={
        <>
          <Link to="/cases">Cases</Link>
          <Link to="/cases" search={{ flow: data.flow }}>
            {data.flow}
          </Link>
          {data.parent && <Link to="/cases/$case" params={{ case: data.parent }}>{data.parent}</Link>}
          {data.mends && <Link to="/cases/$case" params={{ case: data.mends }} search={{ item: data.mends_item ?? undefined }}>mends {data.mends}</Link>}
        </>
      }
      heading={
        <>
          {data.id} <CopyButton text={data.id} label="Copy the id" />
          {data.status === "running" && data.tasks_open > 0 && !data.held.length ? (
            <span className="case-waits">
              <StateIcon state="person" size={14} /> <WaitsForPerson view={data} />
            </span>
          ) : (
            <StateBadge state={caseState(data)} word={data.status === "running" ? undefined : wordOf(data.status)} />
          )}
          {failedText(data) && (
            <span className="case-waits">
              <FailedItems view={data} />
            </span>
          )}
        </>
      }
      lead={<Lead view={data} />}
      actions={
        <>
          {toTeach && <TeachAct failures={toTeach} />}
          <Acts view={data} onMade={(made) => void navigate({ to: "/cases/$case", params: { case: made }, search: {} })} />
        </>
      }
    >
      <Why subject={data.id} facts={phone ? 1 : 3} offered={offered && labelFor(offered, data)} />
      {(data.status === "failed" || data.held.length > 0) && <TriedInVain repairs={why.data?.repairs ?? []} />}
      {!data.ended_at && <ToldNotice repairs={why.data?.repairs ?? []} />}
      {standsStill(data) && /no pilot/i.test([why.data?.sentence, ...(why.data?.facts ?? [])].join(" ")) && <ActionRow label="What can be done" actions={aboutWaiting(data)} />}
      <Tabs
        label="Views of the case"
        current={view}
        tabs={VIEWS.map((each) => ({ id: each, label: WORDS[each], count: each === "items" ? itemsBegun(data) : undefined, link: { to: "/cases/$case", params: { case: id }, search: (before) => ({ view: each, item: before.item }) } }))}
      />
      <WithDetails details={details ? <Suspense fallback={<Loading lines={6} />}>{details}</Suspense> : null}>
        <Suspense fallback={<Loading lines={6} />}>
          {view === "graph" && <GraphAfterText id={data.id} />}
          {view === "timeline" && <TimelineView id={data.id} />}
          {view === "items" && <ItemsView id={data.id} />}
          {view === "history" && <HistoryView id={data.id} />}
          {view === "data" && <DataView view={data} />}
          {view === "messages" && <MessagesView id={data.id} />}
          {view === "compare" && <CompareView view={data} />}
          {view === "file" && <FlowFile query={caseFlowFileQuery(data.id)} edit={(file) => <EditFlow view={data} file={file} />} />}
        </Suspense>
      </WithDetails>
    </Page>
  );
}

/** Its jobs wait for a pilot that there is not: what a person can do about that. */
function aboutWaiting(view: CaseView): Action[] {
  const anew = goTo("Start it with other inputs", { to: "/run/$flow", params: { flow: view.flow }, search: { inputs_of: view.id } }, "start");
  return [goTo("See the pilots", { to: "/pilots" }), goTo("Add a pilot", { to: "/pilots", search: { add: true } }, "start"), ...(view.parent || view.mends || !hasInputs(view) ? [] : [anew]), caseAction("cancel", view.id)];
}

/** Whether there is anything that it could be given otherwise. */
function hasInputs(view: CaseView): boolean {
  return Object.keys(view.inputs ?? {}).length + Object.keys(view.defaults ?? {}).length > 0;
}

function Lead({ view }: { view: CaseView }) {
  return (
    <span className="case-lead">
      <span>
        flow <Link to="/flows/$name" params={{ name: view.flow }}>{view.flow}</Link>
      </span>
      <span>
        started <Time at={view.started_at} />
        {view.owner && ` by ${personText(view.owner)}`}
        {view.schedule && <>, schedule <Link to="/schedules" search={{ name: view.schedule }}>{view.schedule}</Link></>}
      </span>
      <span>
        {view.ended_at ? "took" : "for"} <Duration from={view.started_at} to={view.ended_at} />
      </span>
      {view.stands_for && (
        <span>
          runs <Link to="/cases/$case" params={{ case: view.stands_for }}>{view.stands_for}</Link> again
        </span>
      )}
      {view.rerun_of && !view.stands_for && (
        <span>
          uses results of <Link to="/cases/$case" params={{ case: view.rerun_of }}>{view.rerun_of}</Link>
        </span>
      )}
      {view.ended_at > 0 && <LaterRun view={view} />}
      <NewerFlow view={view} before="its flow has changed since:" />
      <CaseInputs view={view} />
      <span className="case-lead-bar">
        <CaseProgress view={view} />
      </span>
    </span>
  );
}

/** The case that stands in its place. */
function LaterRun({ view }: { view: CaseView }) {
  const later = useQuery(laterRunQuery(view.id)).data;
  if (!later) return null;
  return (
    <span>
      run again as <Link to="/cases/$case" params={{ case: later.id }}>{later.id}</Link>, {wordOf(later.status)}
    </span>
  );
}

/** What a person most often wants to do with a case in this state. */
function usualAct(view: CaseView): CaseAct["name"] {
  if (view.status === "failed" || failedText(view)) return "rerun-failed";
  if (view.status === "suspended") return "resume";
  return view.held.length ? "try-again" : "rerun";
}

/** That act, if the case lets it be done, and the caller may. */
function firstAct(view: CaseView, may: (operation: string) => boolean): CaseAct | undefined {
  return CASE_ACTS.find((each) => each.name === usualAct(view) && may(each.operation) && each.fits(view));
}

/** Whether it has been waited for as long as a page may wait for what only stands among its acts. */
function useIsLate(waits: boolean): boolean {
  const [isLate, setIsLate] = useState(false);
  useEffect(() => {
    if (!waits) return undefined;
    const timer = setTimeout(() => setIsLate(true), LATE_MS);
    return () => {
      clearTimeout(timer);
      setIsLate(false);
    };
  }, [waits]);
  return waits && isLate;
}

function Acts({ view, onMade }: { view: CaseView; onMade: (made: string) => void }) {
  const may = useMayAll();
  const navigate = route.useNavigate();
  const [act, setAct] = useState<CaseAct | null>(null);
  const offered = CASE_ACTS.filter((each) => may(each.operation) && each.fits(view));
  const first = firstAct(view, may);
  if (!offered.length && !act) return null;
  const isHeld = !view.ended_at && view.held.length > 0;
  const mayRunAnew = isHeld ? may("start") : offered.some((each) => each.name === "rerun");
  const withInputs = {
    id: "inputs",
    label: "Run again with other inputs …",
    hint: `A form with the inputs of this case, to change before it starts.${isHeld ? " It says what becomes of this one." : ""}`,
    run: () => void navigate({ to: "/run/$flow", params: { flow: view.flow }, search: isHeld ? { inputs_of: view.id } : { rerun_of: view.id } }),
  };
  return (
    <>
      {first && (
        <button type="button" className="button" onClick={() => setAct(first)}>
          {labelFor(first, view)}
        </button>
      )}
      <Menu label="More actions" acts={[...(mayRunAnew && !view.parent && !view.mends && hasInputs(view) ? [withInputs] : []), ...offered.filter((each) => each !== first).map((each) => ({ id: each.name, label: labelFor(each, view), hint: each.will(1), danger: each.danger, run: () => setAct(each) }))]} />
      <CaseActDialog act={act} cases={[view]} onClose={() => setAct(null)} onDone={(made) => made[0] && onMade(made[0])} />
    </>
  );
}
