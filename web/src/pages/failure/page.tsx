/** One cause of failures: its cases, what tells them from others, and what rules did and would do. */
import { personText } from "@/components/person-text";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { casesQuery, type CaseView } from "@/api/queries";
import { useMay } from "@/api/session";
import { useKeys } from "@/app/keys";
import { CaseInputs } from "@/components/case-inputs";
import { number, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { useTargetWhileOpen } from "@/components/target-while-open";
import { Page, Panel } from "@/components/page";
import { ApplyPanel } from "@/components/recovery/apply-panel";
import { cameOf, itemWords, resultWord } from "@/components/recovery/decision-words";
import { FailingLog } from "@/components/recovery/failing-log";
import { CauseText } from "@/components/recovery/message";
import { decisionQuery, failureQuery, failureValuesQuery, groupDecisionsQuery, UNDER_WAY, type DecisionView, type FailureGroup } from "@/components/recovery/queries";
import { ruleWords } from "@/components/recovery/rule-walk";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { StateBadge } from "@/components/state-badge";
import { Time } from "@/components/time";
import { DistinguishingValues } from "./distinguishing-values";
import { HandOverDialog, MendOnceDialog } from "./dialogs";
import { RulesOfGroup } from "./rules-of-group";
import "@/components/recovery/recovery.css";

const route = getRouteApi("/failures/$group");

export default function FailurePage() {
  const { group } = route.useParams();
  return <Failure key={group} group={group} />;
}

function Failure({ group }: { group: string }) {
  const { decision: asked, only, act: dialog } = route.useSearch();
  const navigate = route.useNavigate();
  const setDialog = (act: "mend" | "person" | undefined, decision = asked) => void navigate({ search: (before) => ({ ...before, act, decision }), replace: true });
  const failure = useQuery(failureQuery(group));
  const decisions = useQuery(groupDecisionsQuery(group, only));
  const values = useQuery(failureValuesQuery(group));
  const isDecided = failure.data !== undefined && failure.data.group.rejected === failure.data.group.count;
  // A person has decided it: there is nothing that a rule would be for.
  const mayTeach = useMay("add_rule") && !isDecided;
  const mayMend = useMay("mend");
  const mayAsk = useMay("reject_choice");
  const rows = (decisions.data ?? failure.data?.samples ?? []).filter((each) => !isReplaced(each) && (!only || each.handling === only));
  const known = decisions.data !== undefined && !decisions.isPlaceholderData;
  // Failures that come stand before those that were there: what is looked at stays.
  const first = useTargetWhileOpen(known, rows[0])?.id;
  const current = rows.find((each) => each.id === asked) ?? rows.find((each) => each.id === first) ?? rows[0];
  const mendable = mayMend ? mendableOf(rows, current) : undefined;
  const isAnother = asked !== undefined && mendable?.id !== asked; // than whoever came here means
  const at = dialog === "mend" ? (isAnother ? undefined : mendable) : current;
  const meant = useTargetWhileOpen(dialog !== undefined, at && known ? { at, waiting: rows.filter((each) => each.state === "waiting"), isChosen: at.id === asked } : undefined);
  const choose = (id: string) => void navigate({ search: (before) => ({ ...before, decision: id }), replace: true });
  const step = (by: number) => {
    const next = rows[rows.findIndex((each) => each.id === current?.id) + by];
    if (next) choose(next.id);
  };
  useKeys("Failure", [
    { keys: "j", does: "next case", run: () => step(1) },
    { keys: "k", does: "previous case", run: () => step(-1) },
    ...(mayTeach ? [{ keys: "t", does: "teach a repair", run: () => void navigate({ to: "/failures/$group/teach", params: { group } }) }] : []),
  ]);
  const info = failure.data?.group;
  const given = useGiven(rows);
  return (
    <Page
      title={info ? info.message : "Failure"}
      heading={info ? <CauseText text={info.message} /> : "Failure"}
      crumbs={<Link to="/failures">Failures</Link>}
      lead={info && <Lead group={info} />}
      actions={
        <>
          {mayAsk && current && canBeWrong(current) && (
            <button type="button" className="button" onClick={() => setDialog("person")}>
              <Icon name="person" /> Hand to a person
            </button>
          )}
          {mendable && (
            <button type="button" className="button" onClick={() => setDialog("mend", isAnother ? mendable.id : asked)}>
              <Icon name="tool" /> Mend once
            </button>
          )}
          {mayTeach && (
            <Link to="/failures/$group/teach" params={{ group }} search={current ? { decision: current.id } : {}} className="button primary">
              <Icon name="rules" /> Teach
            </Link>
          )}
        </>
      }
    >
      {current && (mendable || mayTeach) && <WhatActsDo rows={rows} mended={mendable && (mendable === current ? "the case that is chosen below" : mendable.case)} mayTeach={mayTeach} />}
      <Loaded query={failure} lines={10}>
        {(view) => (
          <>
            <div className="group-columns">
              <Panel title={only ? `${ONLY_WORDS[only]}: ${number(rows.length)}` : plural(rows.length, "failure of this cause", "failures of this cause")} className="flush group-cases" actions={only && <Link to="/failures/$group" params={{ group }} className="muted">show all</Link>}>
                {rows.length === 0 ? (
                  <EmptyState title="None match" icon="filter">No failure of this cause is of that kind any more.</EmptyState>
                ) : (
                  <ul className="group-samples" aria-label="Failures of this cause">
                    {rows.slice(0, 200).map((each) => (
                      <li key={each.id}>
                        <button type="button" className="group-sample" aria-current={each.id === current?.id || undefined} onClick={() => choose(each.id)}>
                          <CaseOfCause decision={each} given={given.get(each.case)} />
                          <DecisionState decision={each} />
                          <Time at={each.at} />
                        </button>
                      </li>
                    ))}
                  </ul>
                )}
                {current && <Sample decision={current} />}
              </Panel>
              <Panel title="What tells these cases apart" className="flush group-values">
                <Loaded query={values}>{(found) => <DistinguishingValues values={found} group={group} mayTeach={mayTeach} />}</Loaded>
              </Panel>
              <RulesOfGroup view={view} decision={current} mayTeach={mayTeach} />
            </div>
            <ApplyPanel key={group} view={view} />
            {meant && dialog === "mend" && mayMend && <MendOnceDialog {...meant} view={view} onClose={() => setDialog(undefined)} />}
            {meant && dialog === "person" && mayAsk && <HandOverDialog decision={meant.at} onClose={() => setDialog(undefined)} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** Which of the acts does something now, and to what. */
function WhatActsDo({ rows, mended, mayTeach }: { rows: readonly DecisionView[]; mended: string | undefined; mayTeach: boolean }) {
  const waiting = rows.filter((each) => each.state === "waiting").length;
  return (
    <p className="acts-explained muted">
      {mended && (
        <span>
          <strong>Mend once</strong> repairs {waiting > 1 ? `${mended}, or all ${waiting} that wait` : mended}, now, after you have picked how.{" "}
        </span>
      )}
      {mayTeach && (
        <span>
          <strong>Teach</strong> makes a rule for cases that fail like this from then on; at the end you say whether it is also applied to these.
        </span>
      )}
    </p>
  );
}

const GIVEN_MAX = 60;

/** What the first of the cases were given, which tells them apart. */
function useGiven(rows: readonly DecisionView[]): Map<string, CaseView> {
  const ids = [...new Set(rows.map((each) => each.case))].slice(0, GIVEN_MAX);
  const found = useInfiniteQuery({ ...casesQuery({ where: `id in [${ids.map((id) => `'${id}'`).join(", ")}]` }), enabled: ids.length > 0 });
  return new Map(found.data?.pages.flatMap((page) => page.data).map((view) => [view.id, view]));
}

/** Which case it is, what it was given, and in which of its items it failed; none of that is cut. */
function CaseOfCause({ decision, given }: { decision: DecisionView; given: CaseView | undefined }) {
  const item = itemWords(decision);
  return (
    <span className="group-case" title={decision.item ? `${decision.case}:${decision.item}` : decision.case}>
      <span>{decision.case}</span>
      {item && <span> {item}</span>}
      {given && <CaseInputs view={given} />}
    </span>
  );
}

/** The failure that can be mended once: the one at hand, or else one that waits. What nothing is held for any more has gone on, or its
 * case is over: it is run again. */
export function mendableOf<Each extends Pick<DecisionView, "state">>(rows: readonly Each[], current: Each | undefined): Each | undefined {
  return current?.state === "waiting" || current?.state === "running" ? current : rows.find((each) => each.state === "waiting");
}

/** Of what waits an author is asked already; what was rejected has its answer. */
function canBeWrong(decision: DecisionView): boolean {
  return Boolean(decision.exlet) && decision.state !== "waiting" && decision.state !== "rejected";
}

/** A case that was reopened has another decision about the same failure, which counts. */
function isReplaced(decision: DecisionView): boolean {
  return Boolean(decision.replaced_by) && decision.state !== "rejected";
}

const ONLY_WORDS = { waiting: "Failures that wait for a person", unhandled: "Failures that nobody took up", "run-again": "Failures whose cases were run again", settled: "Failures whose cases completed all the same, or were cancelled, or that a loop lets fail", rejected: "Rejected by a person", told: "Failures that a person was only told of", handled: "Failures about which a rule, or a person, did something" } as const;

export function DecisionState({ decision }: { decision: DecisionView }) {
  if (decision.state === "waiting") return <StateBadge state="person" word="waits" />;
  if (decision.result === "recovered") return <StateBadge state="done" word="recovered" />;
  if (decision.result === UNDER_WAY) return <StateBadge state="repairing" word={resultWord(UNDER_WAY)} />;
  if (decision.result === "restarted" || decision.result === "completed") return <StateBadge state="done" word={resultWord(decision.result)} />;
  if (decision.result === "told") return <StateBadge state="person" word="a person was told" />;
  if (decision.state === "running") return <StateBadge state="repairing" />;
  if (decision.handling === "rejected") return <StateBadge state="stopped" word="a person rejected it" />;
  if (decision.handling === "run-again") return <StateBadge state="stopped" word="run again" />;
  if (decision.handling === "settled") return <StateBadge state="stopped" word="settled" />;
  if (!decision.exlet) return <StateBadge state="failed" word="no rule" />;
  return <StateBadge state={decision.result && decision.result !== "failed" ? "stopped" : "failed"} word={decision.result ? resultWord(decision.result) : decision.state} />;
}

function Lead({ group }: { group: FailureGroup }) {
  const parts = [
    `${plural(group.count, "failure")} in ${plural(group.cases, "case")}`,
    `${group.rejected === group.count ? "a person's decision in" : `${group.category || group.type} failure of`} ${group.flows.join(", ")}: ${group.tasks.join(", ")}`,
    ...(group.unhandled && group.unhandled < group.count ? [`${number(group.unhandled)} that nobody took up`] : []),
    ...(group.run_again ? [`of ${number(group.run_again)} the case was run again`] : []),
    ...(group.settled ? [`of ${number(group.settled)} the case completed all the same or was cancelled, or a loop lets it fail`] : []),
    ...(group.told ? [`of ${group.told} a person was told, and nothing else was done`] : []),
    ...(group.waiting ? [`${plural(group.waiting, "waits", "wait")} for a person`] : []),
  ];
  return (
    <>
      {parts.join(" · ")} · first <Time at={group.first_at} />, last <Time at={group.last_at} />
    </>
  );
}

function Sample({ decision }: { decision: DecisionView }) {
  const whole = useQuery(decisionQuery(decision.id));
  const job = (whole.data?.context["job"] ?? {}) as Record<string, unknown>;
  const log = decision.fault?.log_tail || String(job["log_tail"] ?? "");
  return (
    <div className="group-sample-view">
      <div className="row">
        <strong className="clip">{decision.case}</strong>
        <Link to="/cases/$case" params={{ case: decision.case }} search={{ view: "items", item: decision.item ?? undefined }}>
          open the case
        </Link>
      </div>
      <p>{decision.fault?.message ?? decision.note}</p>
      {log ? <FailingLog log={log} message={decision.fault?.message ?? ""} /> : <p className="muted">The job has printed nothing.</p>}
      {decision.exlet && (
        <p className="muted">
          {decision.exlet} was done
          {decision.rule !== null && decision.rules && ` by ${ruleWords({ ...decision, task: decision.tree })}`}
          {decision.ordered_by && ` by order of ${personText(decision.ordered_by)}`}
          {decision.result && `: ${cameOf(decision)}`}
        </p>
      )}
    </div>
  );
}
