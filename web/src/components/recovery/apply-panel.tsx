/** Rules applied to what waits or has failed: how far that has come, what came of each case, and a stop. */
import { personText } from "@/components/person-text";
import { keepPreviousData, useInfiniteQuery, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useId, useState } from "react";
import { caseOfDecision } from "@/api/case-ids";
import { casesQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import { ConfirmDialog } from "@/components/dialog";
import { number, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { useTargetWhileOpen } from "@/components/target-while-open";
import { Panel } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { toastError } from "@/components/toasts";
import { caseOutcomes } from "./case-outcomes";
import { appliedWords, applyQuery, applyRules, conclusionQuery, groupDecisionsQuery, ruleSetQuery, stopApply, type ApplyProgress, type DecisionView, type FailureView } from "./queries";

interface ApplyProps {
  view: FailureView;
  /** The rule that was just saved. */
  saved?: { rules: string; version: number; inForce: boolean };
}

const FLOWS_ASKED = 4;

/** Whether a rule that is in force takes this cause up, by a sample of each flow: undefined to somebody who may not ask,
 * "asking" as long as it is not known. What is known holds while it is asked again, so that no button goes from under a hand;
 * only what was known before a rule was saved does not. */
function useRuleHolds(samples: readonly DecisionView[], saved: ApplyProps["saved"]): boolean | "asking" | undefined {
  const mayEvaluate = useMay("evaluate_rules");
  const open = samples.filter((each) => !each.replaced_by && each.state !== "done" && each.state !== "failed"); // a rule may hold for earlier tries alone
  const asked = [...new Map((open.length ? open : samples).toReversed().map((each) => [each.flow, each])).values()].slice(0, FLOWS_ASKED);
  const sets = useQueries({ queries: asked.map((each) => ({ ...ruleSetQuery(each.flow), enabled: mayEvaluate })) });
  const isOld = sets.some((set, at) => asked[at]?.flow === saved?.rules && (set.data?.version ?? 0) < (saved?.version ?? 0));
  const said = useQueries({
    queries: asked.map((each, at) => ({ ...conclusionQuery(each.flow, each.id, sets[at]?.data?.version ?? 0), enabled: mayEvaluate && sets[at]?.isSuccess === true, placeholderData: keepPreviousData })),
  });
  if (!mayEvaluate) return undefined;
  if (said.some((each) => each.data?.conclusion?.exlet)) return true;
  if (isOld || sets.some((each) => each.isPending) || said.some((each, at) => each.isPlaceholderData || (each.isPending && !sets[at]?.isError))) return "asking";
  return said.length > 0 && said.every((each) => each.isSuccess) ? false : undefined;
}

/** What the rules can still be asked about: what waits for a person, what waits for its next try without anybody, and what its
 * case has failed by. */
export function openOf(view: Pick<FailureView, "open_waiting" | "open_failed"> & { group: Pick<FailureView["group"], "waiting"> }): { person: number; retry: number; failed: number } {
  const person = Math.min(view.open_waiting, view.group.waiting);
  return { person, retry: view.open_waiting - person, failed: view.open_failed };
}

type Open = ReturnType<typeof openOf>;

/** What the button counts. */
function openWords({ person, retry, failed }: Open): string {
  return [person && `${plural(person, "waits", "wait")} for a person`, retry && `${plural(retry, "waits", "wait")} for its next try`, failed && `${number(failed)} of failed cases`].filter(Boolean).join(", ");
}

function waitingWords({ person, retry, failed }: Open): string {
  const alone = retry > 0 && !person && !failed ? " Nobody has to do anything." : "";
  return [person && `${plural(person, "failure")} ${person === 1 ? "waits" : "wait"} for a person.`, retry && `${plural(retry, "failure")} ${retry === 1 ? "is" : "are"} tried again when the time has come.${alone}`].filter(Boolean).join(" ");
}

export function ApplyPanel({ view, saved }: ApplyProps) {
  const onTrial = saved !== undefined && !saved.inForce;
  const { group: info, samples } = view;
  const counts = openOf(view);
  const group = info.id;
  const client = useQueryClient();
  const mayApply = useMay("apply_rules");
  const mayStop = useMay("stop_apply");
  const id = useId();
  const [asking, setAsking] = useState(false);
  const [retry, setRetry] = useState(false);
  const [asked, setAsked] = useState(false);
  const progress = useQuery(applyQuery(group, asked));
  const open = view.open_waiting + view.open_failed;
  const meant = useTargetWhileOpen(asking, counts) ?? counts;
  const forPeople = counts.person + counts.failed > 0;
  const answer = useRuleHolds(samples, saved);
  const holds = answer === "asking" ? undefined : answer;
  // As long as it is not known whether a rule holds, nothing is offered that the answer would take away again.
  const looking = answer === "asking" && !onTrial;
  const cannot = holds === true || (holds === undefined && !onTrial) ? "" : onTrial ? "The rule is on trial and does nothing yet: put it in force first." : "No rule that is in force holds for these failures as they are now: teach one first.";
  const begin = (asItIs: boolean) => {
    setRetry(asItIs);
    setAsking(true);
  };
  const run = () => {
    // The answer comes when all is done; meanwhile the progress is read.
    setAsked(true);
    applyRules(group, retry)
      .catch(toastError)
      .finally(() => setAsked(false))
      .finally(() => void Promise.all(["failures", "decisions", "cases", "overview"].map((key) => client.invalidateQueries({ queryKey: [key] }))));
    return Promise.resolve();
  };
  const state = progress.data?.started_at ? progress.data : null;
  if (!state && !asking && (!open || !mayApply)) return null;
  return (
    <Panel
      title="Apply the rules to what waits or has failed"
      className="apply-panel"
      actions={
        <>
          {state?.running && mayStop && (
            <button type="button" className="button small danger" onClick={() => void stopApply(group).then(() => client.invalidateQueries({ queryKey: ["failures", "apply", group] }), toastError)}>
              <Icon name="stop" size={14} /> Stop
            </button>
          )}
          {mayApply && !state?.running && open > 0 && (
            <>
              <span className="muted">{openWords(counts)}</span>
              {cannot && forPeople && (
                <button type="button" className="button small" onClick={() => begin(true)}>
                  <Icon name="run" size={14} /> Try again as they are
                </button>
              )}
              <button type="button" className={cannot || !forPeople ? "button small" : "button small primary"} disabled={cannot !== "" || looking} aria-describedby={cannot ? `${id}-why` : undefined} onClick={() => begin(false)}>
                <Icon name="run" size={14} /> {forPeople ? `Apply to ${plural(open, "failure")}` : `Apply to ${number(open)} under repair`}
              </button>
            </>
          )}
        </>
      }
    >
      {mayApply && !state?.running && open > 0 && cannot && (
        <p className="muted" id={`${id}-why`}>
          {cannot} {waitingWords(counts)}
        </p>
      )}
      {state ? <Progress state={state} group={group} /> : !cannot && <p className="muted">{waitingWords(counts)} A rule that is in force is applied to them here.</p>}
      <ConfirmDialog
        title={`Apply the rules: ${info.message}`}
        open={asking}
        act="Apply"
        onClose={() => setAsking(false)}
        onAct={run}
        will={
          <>
            <p>
              The rules are asked again about {plural(meant.person + meant.retry + meant.failed, "failure")}: {meant.person} that {meant.person === 1 ? "waits" : "wait"} for a person, {meant.retry > 0 && <>{meant.retry} that {meant.retry === 1 ? "waits" : "wait"} for the next try, </>}{meant.failed} whose cases have failed. Cases that a rule takes up go on from where they stood; nothing that was completed runs again. What no rule takes up stays as it is. Cases that were mended or run again since are left out.
            </p>
            {openWords(meant) !== openWords(counts) && <p className="notice" role="status">Since you opened this it is others: {openWords(counts) || "none"}. The rules are asked about all that are open when you apply them.</p>}
            <label className="check-label">
              <input type="checkbox" checked={retry} onChange={(event) => setRetry(event.target.checked)} /> also try again, as they are, those that no rule takes up
            </label>
          </>
        }
      />
    </Panel>
  );
}

const CASES_ASKED = 100;

/** How each of these cases stands, as far as that is known. */
function useStatus(ids: readonly string[]): Map<string, string> {
  const asked = ids.slice(0, CASES_ASKED);
  const found = useInfiniteQuery({ ...casesQuery({ where: `id in [${asked.map((id) => `'${id}'`).join(", ")}]` }), enabled: asked.length > 0 });
  return new Map(found.data?.pages.flatMap((page) => page.data).map((view) => [view.id, view.status]));
}

function Progress({ state, group }: { state: ApplyProgress; group: string }) {
  const decisions = useQuery(groupDecisionsQuery(group));
  const reasons = new Map(Object.entries(state.refused).map(([id, why]) => [caseOfDecision(id), why]));
  const asked = new Set([...state.taken_up, ...state.left, ...Object.keys(state.refused)]);
  const status = useStatus([...new Set([...asked].map(caseOfDecision))]);
  const cameOf = caseOutcomes(decisions.data ?? [], asked, state.started_at, status);
  const shown = new Set(cameOf.map((each) => each.case));
  const recovered = cameOf.filter((each) => each.word === "recovered").length;
  const inVain = cameOf.filter((each) => each.state === "failed" && each.tried).length;
  return (
    <div className="stack">
      <div className="row wrap">
        <progress value={state.done} max={Math.max(1, state.total)} aria-label="Progress" />
        <span role="status">
          {appliedWords(state)}
          {recovered > 0 && `; ${plural(recovered, "case")} recovered`}
          {inVain > 0 && `; ${plural(inVain, "case")} failed again`}
        </span>
        <span className="muted">by {personText(state.by)}</span>
      </div>
      {cameOf.length > 0 && (
        <ul className="apply-results" aria-label="What came of each case">
          {cameOf.slice(0, 200).map((each) => (
            <li key={each.case}>
              <Link to="/cases/$case" params={{ case: each.case }}>{each.case}</Link>
              <span className="muted">{each.tried || "nothing was done"}</span>
              <span className="apply-result">{reasons.has(each.case) ? <StateBadge state="failed" word={`refused: ${reasons.get(each.case)}`} /> : <StateBadge state={each.state} word={each.word} />}</span>
            </li>
          ))}
        </ul>
      )}
      {[...reasons].filter(([id]) => !shown.has(id)).map(([id, why]) => (
        <p key={id}>{id}: {why}</p>
      ))}
    </div>
  );
}
