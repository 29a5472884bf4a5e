/** What the rule would have done, where it goes, and saving it: on trial or in force, for those that wait, too. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { ApiError } from "@/api/errors";
import { number, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { ApplyPanel } from "@/components/recovery/apply-panel";
import { withTerm } from "@/components/recovery/conditions";
import { addRule, agreementQuery, failuresQuery, promoteRule, ruleSetQuery, type FailureView, type RuleSpec, type TrialEntry, type TrialView } from "@/components/recovery/queries";
import { RuleTreeView } from "@/components/recovery/rule-tree-view";
import { pathTo, ruleWords, setWords, treeWords, walkTree, type WalkedRule } from "@/components/recovery/rule-walk";
import { ErrorState, Loading } from "@/components/states-of-page";
import { toast } from "@/components/toasts";
import { Glossed } from "@/components/word";
import { refusalWords, tryLimitFor } from "./condition-advice";
import type { RuleDraft, SavedRule } from "./draft";
import type { ROWS } from "./search";

type Rows = (typeof ROWS)[number];

interface PreviewProps {
  view: FailureView;
  spec: RuleSpec;
  draft: RuleDraft;
  /** The primitives of the repair. */
  steps: readonly string[];
  trial: TrialView | undefined;
  problem: ApiError | null;
  /** Of the case at hand. */
  context: Record<string, unknown> | undefined;
  rows: Rows | undefined;
  onRows: (rows: Rows | undefined) => void;
  onChange: (part: Partial<RuleDraft>) => void;
  onClear: () => void;
  onCase: (decision: string) => void;
  /** “Teach another rule” stands at the top already. */
  isOffered?: boolean;
}

export function Preview(props: PreviewProps) {
  const { trial, draft, spec } = props;
  return (
    <div className="stack teach-preview">
      {!draft.saved && <Panel title="What it would have done">
        {trial ? <Numbers {...props} trial={trial} /> : <p className="muted">{props.problem ? "The condition cannot be tried: see what is wrong with it." : "Point at something, and it is tried against the past at once."}</p>}
      </Panel>}
      {draft.saved ? <SavedPlace saved={draft.saved} /> : trial && <PlacePanel trial={trial} condition={spec.condition} exlet={spec.exlet} />}
      {draft.saved ? <SavedPanel {...props} /> : <SavePanel {...props} />}
      {draft.saved && <ApplyPanel view={props.view} saved={draft.saved} />}
    </div>
  );
}

function Numbers({ trial, rows, onRows, onCase }: PreviewProps & { trial: TrialView }) {
  const lists: Record<Rows, TrialEntry[]> = { caught: trial.caught_ids, missed: trial.missed_ids, otherwise: trial.otherwise, others: trial.others ?? [] };
  const causes = new Set(lists.others.map((each) => each.group)).size;
  const groups = useQuery({ ...failuresQuery({}), enabled: rows === "others" });
  const messages = new Map((groups.data ?? []).map((each) => [each.id, each.message]));
  const toggle = (which: Rows) => onRows(rows === which ? undefined : which);
  const takes = [...new Set(trial.otherwise.map((each) => (each.rule === null ? each.exlet : `rule ${each.rule}`)))].join(", ");
  return (
    <div className="stack">
      <div className="trial-numbers" role="status">
        <button type="button" className="trial-number good" aria-expanded={rows === "caught"} onClick={() => toggle("caught")}>
          <strong>{trial.caught}</strong> of {trial.of} caught
        </button>
        <button type="button" className={trial.missed_ids.length ? "trial-number warn" : "trial-number"} disabled={!trial.missed_ids.length} aria-expanded={rows === "missed"} onClick={() => toggle("missed")}>
          <strong>{trial.missed_ids.length}</strong> missed
        </button>
        <button type="button" className={trial.otherwise.length ? "trial-number warn" : "trial-number"} disabled={!trial.otherwise.length} aria-expanded={rows === "otherwise"} onClick={() => toggle("otherwise")}>
          <strong>{trial.otherwise.length}</strong> taken {takes ? `from ${takes}` : "from other rules"}
        </button>
        <button type="button" className={lists.others.length ? "trial-number warn" : "trial-number"} disabled={!lists.others.length} aria-expanded={rows === "others"} onClick={() => toggle("others")}>
          <strong>{lists.others.length}</strong> of other causes
        </button>
      </div>
      <p className="muted">Tried on {plural(trial.looked_at, "past failure")} of this kind.</p>
      {lists.others.length > 0 && <p className="muted">It would also be asked to mend {plural(lists.others.length, "failure")} of {plural(causes, "other cause")}. If the repair is not for {lists.others.length === 1 ? "that" : "those"}, point at one more value that tells these cases apart.</p>}
      {trial.breaks && <p className="trial-breaks" role="alert"><Icon name="failures" size={14} /> {trial.breaks}</p>}
      {rows && lists[rows].length > 0 && (
        <table className="plain-table">
          <thead><tr><th>Case</th><th>What was done</th><th><span className="visually-hidden">Act</span></th></tr></thead>
          <tbody>
            {lists[rows].slice(0, 100).map((each) => (
              <tr key={each.decision}>
                <td><Link to="/cases/$case" params={{ case: each.case }}>{each.case}</Link>{rows === "others" && each.group && <><br /><Link to="/failures/$group" params={{ group: each.group }}>{messages.get(each.group) ?? "see the cause"}</Link></>}</td>
                <td>{each.exlet ? `${each.exlet}: ${each.result || each.state}` : each.state === "waiting" ? "waits" : "nothing"}</td>
                <td><button type="button" className="link-button" onClick={() => onCase(each.decision)}>{rows === "missed" ? "widen for this" : rows === "otherwise" || rows === "others" ? "tell it apart" : "look at it"}</button></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

/** The tree of a rule set as it is now. */
function useWalked(rules: string, type: string, task: string): { walked: WalkedRule[]; tried: (rule: number) => number } {
  const set = useQuery(ruleSetQuery(rules));
  const tree = (set.data?.rules?.trees as Record<string, Record<string, Parameters<typeof walkTree>[0]>> | undefined)?.[type]?.[task];
  const decided = set.data?.decided ?? {};
  const tried = set.data?.tried ?? {};
  return { walked: tree ? walkTree(tree, (rule) => decided[`${type}/${task}/${rule}`] ?? 0) : [], tried: (rule) => tried[`${type}/${task}/${rule}`] ?? 0 };
}

/** Where a rule stands that was saved here. */
function SavedPlace({ saved }: { saved: SavedRule }) {
  const { walked, tried } = useWalked(saved.rules, saved.type, saved.task);
  const isThere = walked.some((each) => each.rule.id === saved.rule); // the set with it is read when it is saved
  return (
    <Panel title="Its place" className="flush">
      <p className="pad muted">
        Rule {saved.rule} stands in {setWords(saved.rules)}, <Glossed text={treeWords(saved.type, saved.task)} only={["abort"]} />.{isThere && " The path to it is marked."}
      </p>
      {isThere ? <RuleTreeView walked={walked} tried={tried} label="The tree with the saved rule" at={saved.rule} path={pathTo(walked, saved.rule)} height={230} /> : <Loading lines={1} />}
    </Panel>
  );
}

function PlacePanel({ trial, condition, exlet }: { trial: TrialView; condition: string; exlet: string }) {
  const { walked, tried } = useWalked(trial.rules, trial.type ?? "", trial.task);
  const words = treeWords(trial.type ?? "", trial.task);
  return (
    <Panel title="Its place" className="flush">
      <p className="pad muted">
        <Glossed only={["abort"]} text={trial.under === null ? `The first rule for ${words} of ${setWords(trial.rules)}.` : `In ${setWords(trial.rules)}, ${words}: asked if rule ${trial.under} ${trial.side === "true" ? "holds, as an exception to it" : "does not hold"}. The path of this case is marked.`} />
      </p>
      <RuleTreeView walked={walked} tried={tried} label="The tree with the new rule" ghost={{ under: trial.under, side: trial.side as "true" | "false" | "", condition, exlet }} path={trial.under === null ? [] : pathTo(walked, trial.under)} height={230} />
    </Panel>
  );
}

function SavePanel({ spec, draft, steps, trial, problem, context, onChange, view }: PreviewProps) {
  const advised = Object.entries(trial?.missing_bounds ?? {}).find(([primitive]) => steps.includes(primitive))?.[1];
  const bound = advised && tryLimitFor(advised, context);
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const conflict = error instanceof ApiError && error.code === "conflict";
  const newest = Math.max(trial?.version ?? 0, conflict && typeof error.fields["version"] === "number" ? error.fields["version"] : 0);
  const moved = draft.basis !== null && newest > draft.basis;
  const cannot = !spec.condition ? "Point at what tells these cases first." : problem ? "The condition has a mistake." : !spec.exlet ? "Choose or compose a repair." : draft.composing && !spec.flow ? (draft.composed.steps.length ? "A step of the exlet has no command yet, or it has no name." : "The exlet has no step yet.") : !trial ? "It is being tried." : trial.breaks ? refusalWords(trial.breaks, spec.condition, context) : "";
  const save = async (passive: boolean) => {
    setBusy(true);
    setError(null);
    try {
      const added = await addRule({ ...spec, passive, expected: draft.basis });
      onChange({ saved: { rules: added.rules, version: added.version, type: added.type, task: added.task, rule: added.rule, inForce: !passive }, basis: added.version });
      toast("good", `${ruleWords(added, "Rule")} is ${passive ? "on trial" : "in force"}`);
      void Promise.all(["rules", "failures", "proposals"].map((key) => client.invalidateQueries({ queryKey: [key] })));
    } catch (refused) {
      setError(refused);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title="Save">
      <div className="stack">
        <p className="when-then">
          <span className="muted">When</span> <code>{spec.condition || "…"}</code> <span className="muted">then</span> <strong>{spec.exlet || "…"}</strong>
        </p>
        {(moved || conflict) && (
          <div className="conflict" role="alert">
            <p><strong>Somebody else has changed these rules meanwhile.</strong> You began with version {draft.basis}; now it is version {newest}. Your draft is kept. Look at what has changed, then go on: the rule is tried against the new version.</p>
            <div className="row wrap">
              <Link to="/rules/$name" params={{ name: trial?.rules ?? view.group.flows[0] ?? "*" }} search={{ view: "versions", version: draft.basis ?? undefined }} className="button small">See what has changed</Link>
              <button type="button" className="button small primary" onClick={() => { setError(null); onChange({ basis: newest }); void client.invalidateQueries({ queryKey: ["rules"] }); }}>
                Go on with the new version
              </button>
            </div>
          </div>
        )}
        {error !== null && !conflict && <ErrorState error={error} compact />}
        {bound && (
          <p className="notice">
            A job that fails each time would be run again up to {number(trial?.repairs_max ?? 0)} times; then its item is repaired no more. {bound.note}{" "}
            <button type="button" className="link-button" onClick={() => onChange({ condition: withTerm(spec.condition, bound.condition) })}>{bound.label}</button>
          </p>
        )}
        {cannot && <p className="muted" role="status">{cannot}</p>}
        <div className="row wrap">
          <button type="button" className="button primary" disabled={Boolean(cannot) || busy || moved} onClick={() => void save(true)}>Save on trial</button>
          <button type="button" className="button" disabled={Boolean(cannot) || busy || moved} onClick={() => void save(false)}>Put in force</button>
        </div>
        <p className="muted">On trial it is asked and recorded, and does nothing. In force it decides from now on, in running cases too.</p>
      </div>
    </Panel>
  );
}

function SavedPanel({ draft, onChange, onClear, onCase, isOffered }: PreviewProps) {
  const saved = draft.saved;
  const client = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const agreement = useQuery({ ...agreementQuery(saved?.rules ?? ""), enabled: saved !== null && !saved.inForce });
  if (!saved) return null;
  const mine = agreement.data?.find((each) => each.rule === saved.rule && each.task === saved.task && each.type === saved.type);
  const promote = async () => {
    setError(null);
    try {
      const made = await promoteRule(saved.rules, saved.rule, saved.type, saved.task);
      onChange({ saved: { ...saved, version: made.version, inForce: true } });
      toast("good", `${ruleWords(saved, "Rule")} is in force`);
      void Promise.all(["rules", "failures"].map((key) => client.invalidateQueries({ queryKey: [key] })));
    } catch (refused) {
      setError(refused);
    }
  };
  return (
    <Panel title={saved.inForce ? "In force" : "On trial"}>
      <div className="stack">
        <p role="status">
          <Link to="/rules/$name" params={{ name: saved.rules }} search={{ rule: saved.rule, tree: `${saved.type}/${saved.task}` }}>{ruleWords(saved, "Rule")}</Link> is {saved.inForce ? "in force: it decides from now on." : "on trial: it is asked and recorded, and does nothing."}
        </p>
        {!saved.inForce && (
          <p className="muted">
            {mine ? `Since then it would have decided ${plural(mine.fired, "time")}: ${mine.agreed} as was done, ${mine.otherwise.length} otherwise; ${mine.nothing} that nothing was done about.` : "It has not been asked yet."}{" "}
            {mine?.otherwise[0] && <button type="button" className="link-button" onClick={() => onCase(mine.otherwise[0] as string)}>Teach from the one that did not</button>}
          </p>
        )}
        {error !== null && <ErrorState error={error} compact />}
        <div className="row wrap">
          {!saved.inForce && <button type="button" className="button primary" onClick={() => void promote()}>Put in force</button>}
          {!isOffered && <button type="button" className="button" onClick={onClear}>Teach another rule</button>}
        </div>
      </div>
    </Panel>
  );
}
