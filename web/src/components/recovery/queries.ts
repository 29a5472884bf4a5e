/** What the pages of recovery read and change. The first word of a key says which events make it be read again. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { firstCaseOf } from "@/api/case-ids";
import { requestJson, type Schemas } from "@/api/client";
import { number, plural } from "@/components/format";

/** The result of a repair that has tried again, as long as nothing has come of it. */
export const UNDER_WAY = "tried-again";

export type FailureGroup = Schemas["FailureGroup"];
export type FailureView = Schemas["FailureView"];
export type DecisionView = Schemas["DecisionView"];
export type Handling = Exclude<DecisionView["handling"], "" | undefined>;
export type ValueCount = Schemas["ValueCount"];
export type RuleSetView = Schemas["RuleSetView"];
export type RuleSet = Schemas["RuleSet"];
export type RuleTree = Schemas["RuleTree"];
export type Rule = Schemas["Rule"];
export type Flow = Schemas["Flow"];
export type ExceptionType = Schemas["ExceptionType"];
export type Proposal = Schemas["Proposal"];
export type TrialView = Schemas["TrialView"];
export type TrialEntry = Schemas["TrialEntry"];
export type RuleSpec = Schemas["RuleSpec"];
export type RuleAddition = Schemas["RuleAddition"];
export type RuleChange = Schemas["RuleChange"];
export type RuleRevision = Schemas["RuleRevision"];
export type PrimitiveView = Schemas["PrimitiveView"];
export type ExletResults = Schemas["ExletResults"];
export type ApplyProgress = Schemas["ApplyProgress"];
export type ApplyResult = Schemas["ApplyResult"];
export type TrialAgreement = Schemas["TrialAgreement"];
export type EvaluationView = Schemas["EvaluationView"];
export type ReplayView = Schemas["ReplayView"];
export type ContextPath = Schemas["ContextPath"];
export type DifferencesView = Schemas["DifferencesView"];

const API = "/api/v1";
export const part = encodeURIComponent;

export function failuresQuery(wish: { since?: number; flow?: string; limit?: number }) {
  return queryOptions({
    queryKey: ["failures", "groups", wish],
    queryFn: ({ signal }) => requestJson<FailureGroup[]>(`${API}/failures`, { query: { limit: 500, ...wish }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function failureQuery(group: string) {
  return queryOptions({
    queryKey: ["failures", "group", group],
    queryFn: ({ signal }) => requestJson<FailureView>(`${API}/failures/${part(group)}`, { signal }),
    staleTime: 5000,
  });
}

/** The failures of a group in the last 24 hours, by hour; `since` is the beginning of the hour 23 hours ago. */
export function failureCountsQuery(group: string, wish: { period_ms?: number; since?: number } = {}) {
  return queryOptions({
    queryKey: ["failures", "counts", group, wish],
    queryFn: ({ signal }) => requestJson<Schemas["FailureCounts"]>(`${API}/failures/${part(group)}/counts`, { query: wish, signal }),
    staleTime: 10_000,
  });
}

export function failureValuesQuery(group: string) {
  return queryOptions({
    queryKey: ["failures", "values", group],
    queryFn: ({ signal }) => requestJson<ValueCount[]>(`${API}/failures/${part(group)}/values`, { signal }),
    staleTime: 30_000,
  });
}

/** The failures of a cause, all or those that were handled in one way. */
export function groupDecisionsQuery(group: string, handling?: Handling) {
  return queryOptions({
    queryKey: ["decisions", "group", group, handling ?? "all"],
    queryFn: ({ signal }) => requestJson<DecisionView[]>(`${API}/decisions`, { query: { group, handling, limit: 500 }, signal }),
    placeholderData: keepPreviousData,
  });
}

export function decisionQuery(id: string) {
  return queryOptions({
    queryKey: ["decisions", "one", id],
    queryFn: ({ signal }) => requestJson<DecisionView>(`${API}/decisions/${part(id)}`, { signal }),
    enabled: id !== "",
    staleTime: 30_000,
  });
}

export const ruleSetsQuery = queryOptions({
  queryKey: ["rules", "sets"],
  queryFn: ({ signal }) => requestJson<RuleSetView[]>(`${API}/rules`, { signal }),
});

/** A rule set, whole; null where the flow has none yet. */
export function ruleSetQuery(name: string, version?: number) {
  return queryOptions({
    queryKey: ["rules", "set", name, version ?? "newest"],
    queryFn: async ({ signal }) => {
      const sets = await requestJson<RuleSetView[]>(`${API}/rules`, { signal });
      if (!sets.some((each) => each.name === name)) return null;
      return requestJson<RuleSetView>(`${API}/rules/${part(name)}`, { query: { version }, signal });
    },
    enabled: name !== "",
    staleTime: version === undefined ? 2000 : Infinity,
    placeholderData: keepPreviousData,
  });
}

export function ruleVersionsQuery(name: string) {
  return queryOptions({
    queryKey: ["rules", "versions", name],
    queryFn: ({ signal }) => requestJson<RuleSetView[]>(`${API}/rules/${part(name)}/versions`, { signal }),
  });
}

export function agreementQuery(name: string) {
  return queryOptions({
    queryKey: ["rules", "agreement", name],
    queryFn: ({ signal }) => requestJson<TrialAgreement[]>(`${API}/rules/${part(name)}/agreement`, { signal }),
  });
}

export function contextPathsQuery(name: string, type: string, task: string) {
  return queryOptions({
    queryKey: ["rules", "paths", name, type, task],
    queryFn: ({ signal }) => requestJson<ContextPath[]>(`${API}/rules/${part(name)}/paths`, { query: { type, task }, signal }),
    enabled: name !== "",
    staleTime: 60_000,
  });
}

export const exletResultsQuery = queryOptions({
  queryKey: ["rules", "exlet-results"],
  queryFn: ({ signal }) => requestJson<ExletResults[]>(`${API}/exlets/results`, { signal }),
  staleTime: 10_000,
});

export const primitivesQuery = queryOptions({
  queryKey: ["primitives"],
  queryFn: ({ signal }) => requestJson<PrimitiveView[]>(`${API}/primitives`, { signal }),
  staleTime: Infinity,
});

export const learningSettingsQuery = queryOptions({
  queryKey: ["proposals", "settings"],
  queryFn: ({ signal }) => requestJson<Schemas["LearningSettings"]>(`${API}/learning/settings`, { signal }),
  staleTime: 60_000,
});

export function proposalsQuery(every: boolean) {
  return queryOptions({
    queryKey: ["proposals", { every }],
    queryFn: ({ signal }) => requestJson<Proposal[]>(`${API}/proposals`, { query: { every }, signal }),
    placeholderData: keepPreviousData,
  });
}

/** What the rules, as they are now, conclude about a decision. */
export function conclusionQuery(flow: string, decision: string, version: number) {
  return queryOptions({
    queryKey: ["rules", "conclusion", flow, decision, version],
    queryFn: ({ signal }) => requestJson<EvaluationView>(`${API}/rule-previews/evaluate`, { method: "POST", body: { name: version > 0 ? flow : "*", decision }, signal }),
    enabled: decision !== "",
  });
}

/** How far an application of rules has come. It is read again while one runs, or is `asked` for: the server may not have
 * begun. */
export function applyQuery(group: string, asked: boolean) {
  return queryOptions({
    queryKey: ["failures", "apply", group],
    queryFn: ({ signal }) => requestJson<ApplyProgress>(`${API}/failures/${part(group)}/apply`, { signal }),
    refetchInterval: (query) => (asked || query.state.data?.running ? 500 : false),
  });
}

const LEFT_BECAUSE: Record<ApplyProgress["why_left"][string], string> = {
  "no-rule": "taken up by no rule",
  "next-try": "waiting for the next try, which no rule changes",
  passed: "not what the case failed by",
  "run-again": "of a case that was run again meanwhile",
  stopped: "not begun, as somebody has stopped this",
  elsewhere: "of a case that another server has",
};

/** Why failures are left as they are, with how many by each reason: `2 taken up by no rule, 1 of a case that another server has`. */
export function leftWords({ why_left }: Pick<ApplyProgress, "why_left">): string {
  const counts = new Map<string, number>();
  for (const reason of Object.values(why_left)) counts.set(LEFT_BECAUSE[reason], (counts.get(LEFT_BECAUSE[reason]) ?? 0) + 1);
  return [...counts].map(([because, count]) => `${number(count)} ${because}`).join(", ");
}

/** How many failures were taken up, left as they are, and refused: what the button counts; and of how many cases those are that were taken up. */
export function countsOfApply(state: Pick<ApplyProgress, "taken_up" | "left" | "refused">): { taken: number; cases: number; left: number; refused: number } {
  const cases = new Set(state.taken_up.map(firstCaseOf));
  return { taken: state.taken_up.length, cases: cases.size, left: state.left.length, refused: Object.keys(state.refused).length };
}

/** How far applying rules has come, in words: what each failure came to, or that there was none left. */
export function appliedWords(state: Pick<ApplyProgress, "taken_up" | "left" | "refused" | "why_left" | "running" | "stopped" | "total">): string {
  const { taken, cases, left, refused } = countsOfApply(state);
  if (!state.running && !state.stopped && !state.total && !taken && !left && !refused) return "Done: nothing waits for it any more";
  const whyLeft = leftWords(state);
  const counts = `${plural(taken, "failure")} taken up${taken ? ` in ${plural(cases, "case")}` : ""}, ${number(left)} left as ${left === 1 ? "it is" : "they are"}${whyLeft && ` (${whyLeft})`}${refused ? `, ${number(refused)} refused` : ""}`;
  return `${state.stopped ? "Stopped" : state.running ? "Under way" : "Done"}: ${counts}`;
}

export function tryRule(spec: RuleSpec, signal?: AbortSignal): Promise<TrialView> {
  return requestJson<TrialView>(`${API}/rule-drafts/try`, { method: "POST", body: spec, signal });
}

export function addRule(spec: RuleSpec): Promise<RuleAddition> {
  return requestJson<RuleAddition>(`${API}/rule-drafts`, { method: "POST", body: spec });
}

export function promoteRule(name: string, rule: number, type: string, task: string): Promise<RuleChange> {
  return requestJson<RuleChange>(`${API}/rules/${part(name)}/promote`, { method: "POST", body: { rule, type, task } });
}

export function retireRule(name: string, rule: number, type: string, task: string, exceptions: boolean, note: string): Promise<RuleChange> {
  return requestJson<RuleChange>(`${API}/rules/${part(name)}/retire`, { method: "POST", body: { rule, type, task, exceptions, note } });
}

export function changeRule(name: string, change: RuleRevision): Promise<RuleChange> {
  return requestJson<RuleChange>(`${API}/rules/${part(name)}/change`, { method: "POST", body: change });
}

/** The set with other steps for one of its exlets, as its next version. */
export function putExlet(set: RuleSetView, flow: Flow): Promise<RuleSetView> {
  const rules = { ...set.rules, name: set.name, exlets: { ...set.rules?.exlets, [flow.name]: flow } };
  return requestJson<RuleSetView>(`${API}/rules/${part(set.name)}`, { method: "PUT", body: { rules, note: `exlet ${flow.name} changed`, expected: set.version } });
}

export function restoreRules(name: string, version: number): Promise<RuleSetView> {
  return requestJson<RuleSetView>(`${API}/rules/${part(name)}/restore`, { method: "POST", body: { version } });
}

export function replayRules(rules: RuleSet, signal?: AbortSignal): Promise<ReplayView> {
  return requestJson<ReplayView>(`${API}/rule-previews/replay`, { method: "POST", body: rules, signal });
}

export function checkExlet(exlet: Flow, types: ExceptionType[], signal?: AbortSignal): Promise<Schemas["RuleCheckView"]> {
  return requestJson<Schemas["RuleCheckView"]>(`${API}/rule-previews/check`, { method: "POST", body: { exlet, types }, signal });
}

export function applyRules(group: string, retry: boolean): Promise<ApplyResult> {
  return requestJson<ApplyResult>(`${API}/failures/${part(group)}/apply`, { method: "POST", body: { retry } });
}

export function stopApply(group: string): Promise<ApplyProgress> {
  return requestJson<ApplyProgress>(`${API}/failures/${part(group)}/apply/stop`, { method: "POST" });
}

export function mendOnce(decision: DecisionView, exlet: string, flow: Flow | null): Promise<DecisionView> {
  const body = { exlet, flow, decision: decision.state === "waiting" ? decision.id : "", item: decision.state === "waiting" ? "" : (decision.item ?? "") };
  return requestJson<DecisionView>(`${API}/cases/${part(decision.case)}/mend`, { method: "POST", body });
}

export function askAPerson(decision: string, note: string): Promise<DecisionView> {
  return requestJson<DecisionView>(`${API}/decisions/reject`, { method: "POST", body: { decision, note } });
}

export function adoptProposal(id: string, wish: { in_force: boolean; promote_after: number | null; note: string }): Promise<Proposal> {
  return requestJson<Proposal>(`${API}/proposals/${part(id)}/adopt`, { method: "POST", body: wish });
}

export function dismissProposal(id: string, why: string): Promise<Proposal> {
  return requestJson<Proposal>(`${API}/proposals/${part(id)}/dismiss`, { method: "POST", body: { why } });
}
