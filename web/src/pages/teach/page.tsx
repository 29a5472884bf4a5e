/** From a failure to a rule: point at what tells this case, choose or compose a repair, see what it would have done, save. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useMemo, useState } from "react";
import { ApiError } from "@/api/errors";
import { useMay } from "@/api/session";
import { useTargetWhileOpen } from "@/components/target-while-open";
import { Page } from "@/components/page";
import { caseValuesOf, flowOf, isWhole, stepsOf, variablesOf } from "@/components/recovery/exlets";
import { CauseText } from "@/components/recovery/message";
import { decisionQuery, failureQuery, tryRule, type FailureView, type RuleSpec } from "@/components/recovery/queries";
import { useRepairs } from "@/components/recovery/repair-cards";
import { useSettled } from "@/components/settled";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { CaseAtHand } from "./case-at-hand";
import { useDraft } from "./draft";
import { Preview } from "./preview";
import { IneffectiveRulesNotice, SavedRuleNotice } from "./existing-rules";
import { SavedDraft } from "./saved-draft";
import { ThenPanel } from "./then-panel";
import { WhenPanel } from "./when-panel";
import "@/components/recovery/recovery.css";
import "./teach.css";

const route = getRouteApi("/failures/$group/teach");

export default function TeachPage() {
  const { group } = route.useParams();
  const failure = useQuery(failureQuery(group));
  const mayTeach = useMay("add_rule");
  return (
    <Page
      title="Teach a repair"
      crumbs={
        <>
          <Link to="/failures">Failures</Link>
          <Link to="/failures/$group" params={{ group }}>{failure.data ? <CauseText text={failure.data.group.message} /> : group}</Link>
        </>
      }
      lead="Point at what tells these cases apart from others, choose what to do, and see at once what the rule would have done."
    >
      {mayTeach ? (
        <Loaded query={failure} lines={10}>{(view) => <Teach key={view.group.id} view={view} />}</Loaded>
      ) : (
        <EmptyState title="You may look, but not teach" icon="help">Rules are changed by users and administrators. Ask one of them, or hand the cause to a person from its page.</EmptyState>
      )}
    </Page>
  );
}

function Teach({ view }: { view: FailureView }) {
  const group = view.group.id;
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { draft, change, clear, fromBefore } = useDraft(group, search.term);
  const first = useTargetWhileOpen(true, view.samples[0]);
  const id = search.decision ?? first?.id ?? "";
  const decision = useQuery(decisionQuery(id));
  const flow = decision.data?.flow ?? first?.flow ?? "";
  const repairs = useRepairs(flow, view.group);
  const chosen = repairs.find((each) => each.name === draft.exlet);
  const composed = draft.composing && draft.composed.steps.length > 0 && isWhole(draft.composed.steps) && draft.composed.name.trim() !== "";
  const exlet = draft.composing ? draft.composed.name.trim() : draft.exlet;
  const composedFlow = useMemo(() => (composed ? flowOf({ ...draft.composed, name: draft.composed.name.trim() }) : null), [composed, draft.composed]);
  const condition = useSettled(draft.condition.trim(), 250);
  const spec: RuleSpec = { condition, exlet: exlet || "tried", decision: id, group, flow: null };
  const trial = useQuery({
    queryKey: ["rules", "try", spec],
    queryFn: ({ signal }) => tryRule(spec, signal),
    // A rule that is saved is not tried once more against itself.
    enabled: condition !== "" && id !== "" && draft.saved === null,
    placeholderData: keepPreviousData,
    retry: false,
  });
  // The author looks at the version that the first trial was made with.
  const version = trial.data?.version;
  useEffect(() => {
    if (draft.basis === null && version !== undefined) change({ basis: version });
  }, [draft.basis, version]);
  const variables = useMemo(() => variablesOf(decision.data?.context), [decision.data]);
  const values = useMemo(() => caseValuesOf(decision.data?.context), [decision.data]);
  const problem = trial.error instanceof ApiError && condition === draft.condition.trim() ? trial.error : null;
  const shown = useDeferredValue(trial.data);
  const [cameSaved, setCameSaved] = useState(draft.saved !== null);
  const anew = () => {
    clear();
    setCameSaved(false);
    void navigate({ search: {}, replace: true });
  };
  return (
    <div className={draft.composing && !draft.saved ? "teach-columns composing" : "teach-columns"}>
      <CaseAtHand view={view} decision={decision} at={id} condition={draft.condition} onTerm={draft.saved ? undefined : (next) => change({ condition: next })} onCase={(next) => void navigate({ search: (before) => ({ ...before, decision: next, term: undefined }), replace: true })} />
      <div className="stack">
        {fromBefore && draft.saved === null && (
          <p className="notice" role="status">
            A draft of this rule is kept in this tab from before: {fromBefore}.{" "}
            <button type="button" className="link-button" onClick={clear}>Begin anew</button>
          </p>
        )}
        {draft.saved ? cameSaved && <SavedRuleNotice saved={draft.saved} onClear={anew} /> : <IneffectiveRulesNotice group={view.group} />}
        {draft.saved ? (
          <SavedDraft draft={draft} saved={draft.saved} exlet={exlet} flow={composedFlow ?? chosen?.flow} />
        ) : (
          <>
            <WhenPanel view={view} decision={decision.data} condition={draft.condition} problem={problem} onChange={(next) => change({ condition: next })} />
            <ThenPanel draft={draft} repairs={repairs} type={view.group.type} variables={variables} values={values} onChange={change} />
          </>
        )}
      </div>
      <Preview
        view={view}
        spec={{ ...spec, condition: draft.condition.trim(), exlet, flow: composedFlow, note: draft.note }}
        draft={draft}
        steps={(draft.composing ? draft.composed.steps : chosen ? (stepsOf(chosen.flow) ?? []) : []).map((each) => each.do)}
        trial={condition && !problem ? shown : undefined}
        problem={problem}
        context={decision.data?.context}
        rows={search.rows}
        onRows={(rows) => void navigate({ search: (before) => ({ ...before, rows }), replace: true })}
        onChange={change}
        onClear={anew}
        isOffered={cameSaved}
        onCase={(next) => void navigate({ search: (before) => ({ ...before, decision: next, term: undefined }) })}
      />
    </div>
  );
}
