/** A rule: why it is there, the case that it was made for, and its changes, each tried against the past before it is made. */
import { personText } from "@/components/person-text";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/session";
import { CodeView } from "@/components/code-view";
import { ConfirmDialog, Dialog } from "@/components/dialog";
import { Field } from "@/components/field";
import { plural } from "@/components/format";
import { JsonTree } from "@/components/json-tree";
import { Facts } from "@/components/page";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import { useRepairs, type Repair } from "@/components/recovery/repair-cards";
import { WhatItDoes } from "@/components/recovery/what-it-does";
import { changeRule, contextPathsQuery, promoteRule, replayRules, retireRule, type ReplayView, type Rule, type RuleSet, type RuleSetView } from "@/components/recovery/queries";
import { isRetired, ruleWords, setWords, type WalkedRule } from "@/components/recovery/rule-walk";
import { ErrorState } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";
import { Word } from "@/components/word";
import { EditButton } from "./exlets";
import { OpenCauses } from "./open-causes";

export function RuleDetails({ set, type, task, walked, edit }: { set: RuleSetView; type: string; task: string; walked: WalkedRule; edit?: boolean }) {
  const { rule } = walked;
  const client = useQueryClient();
  const [exceptions, setExceptions] = useState(false);
  const [note, setNote] = useState("");
  const mayPromote = useMay("promote_rule");
  const mayRetire = useMay("retire_rule");
  const mayChange = useMay("change_rule");
  const [dialog, setDialog] = useState<"" | "promote" | "retire" | "change">(edit && mayChange && !isRetired(rule) ? "change" : "");
  const done = (said: string) => {
    toast("good", said);
    void client.invalidateQueries({ queryKey: ["rules"] });
  };
  const retired = isRetired(rule);
  const named = ruleWords({ rules: set.name, rule: rule.id, type, task }, "Rule");
  const close = () => setDialog("");
  const [promoted, setPromoted] = useState(false);
  return (
    <>
      <div className="row wrap">
        {rule.passive && mayPromote && <button type="button" className="button small primary" onClick={() => setDialog("promote")}>Put in force</button>}
        {!retired && mayChange && <button type="button" className="button small" onClick={() => setDialog("change")}>Change</button>}
        {!retired && mayRetire && <button type="button" className="button small danger" onClick={() => setDialog("retire")}>Retire</button>}
        <Link to="/rules/$name" params={{ name: set.name }} search={{ view: "cornerstones", tree: `${type}/${task}`, rule: rule.id }} className="button small">Compare cornerstones</Link>
      </div>
      {promoted && !rule.passive && <OpenCauses flow={set.name} />}
      <CodeView text={rule.condition} label="Condition" language="cel" />
      <Facts
        facts={[
          ["does", rule.exlet ? <Link to="/rules/$name" params={{ name: set.name }} search={{ view: "exlets", exlet: rule.exlet }}>{rule.exlet}</Link> : "nothing"],
          ["state", retired ? "out of use" : rule.passive ? "on trial" : "in force"],
          ["asked", `${plural(walked.asked, "time")}: held ${walked.held}, not ${walked.asked - walked.held}${rule.exlet ? `, counted since it does ${rule.exlet}` : ""}`],
          ["decided", plural(walked.decided, "time")],
          ["would have", rule.passive ? plural(set.tried[`${type}/${task}/${rule.id}`] ?? 0, "time") : ""],
          ["made by", personText(rule.author)],
          ["made", rule.at ? <Time at={rule.at} /> : ""],
        ]}
      />
      {rule.exlet && <WhatItDoes set={set} exlet={rule.exlet} />}
      {rule.exlet && <EditButton set={set} flow={set.rules?.exlets?.[rule.exlet]} />}
      {rule.note && <p>{rule.note}</p>}
      <h3><Word of="cornerstone">Cornerstone</Word>: the failure that it was made for</h3>
      {rule.cornerstone ? <JsonTree value={rule.cornerstone} open={2} label="Cornerstone" /> : <p className="muted">{set.hidden_cornerstones.includes(`${type}/${task}/${rule.id}`) ? "It is in a project that you do not see." : "None is kept."}</p>}
      <ConfirmDialog title={`Put rule ${rule.id} in force`} open={dialog === "promote"} act="Put in force" onClose={close} onAct={async () => { await promoteRule(set.name, rule.id, type, task); setPromoted(true); done(`${named} is in force`); }} will={<><p>From now on it decides: <strong>{rule.exlet || "nothing"}</strong> is done where it holds, in running cases too. What was decided before stays.</p>{dialog === "promote" && rule.exlet && <WhatItDoes set={set} exlet={rule.exlet} />}<Past set={set} type={type} task={task} rule={rule.id} change={{ passive: false }} /></>} />
      <ConfirmDialog
        title={`Retire rule ${rule.id}`}
        open={dialog === "retire"}
        act="Retire"
        danger
        onClose={close}
        onAct={async () => { await retireRule(set.name, rule.id, type, task, exceptions, note); done(`${named} is out of use`); }}
        will={
          <>
            <p>It stays in its place and never holds. An earlier version can be restored.</p>
            {rule.on_true != null && <label className="check-label"><input type="checkbox" checked={exceptions} onChange={(event) => setExceptions(event.target.checked)} /> with its exceptions</label>}
            <Field label="Why">{(ids) => <input {...ids} value={note} onChange={(event) => setNote(event.target.value)} />}</Field>
            <Past set={set} type={type} task={task} rule={rule.id} change={{ condition: "false" }} />
          </>
        }
      />
      {dialog === "change" && <ChangeDialog set={set} type={type} task={task} rule={rule} onClose={close} onDone={done} />}
    </>
  );
}

/** The set with one rule changed, as it is sent to be replayed. */
export function changedSet(set: RuleSet, type: string, task: string, rule: number, change: Partial<Rule>): RuleSet {
  const copy = structuredClone(set);
  const trees = copy.trees as unknown as Record<string, Record<string, { rules: Record<string, Rule> }>>;
  const found = trees[type]?.[task]?.rules[String(rule)];
  if (found) Object.assign(found, change);
  return copy;
}

/** What the change would have altered in the past: each number opens its rows. */
function Past({ set, type, task, rule, change }: { set: RuleSetView; type: string; task: string; rule: number; change: Partial<Rule> }) {
  const may = useMay("replay_rules");
  const replay = useMutation({ mutationFn: () => replayRules(changedSet(set.rules as RuleSet, type, task, rule, change)) });
  if (!may || !set.rules) return null;
  return (
    <div className="stack tight">
      <div className="row"><button type="button" className="button small" disabled={replay.isPending} onClick={() => replay.mutate()}>Try against the past</button></div>
      {replay.error && <ErrorState error={replay.error} compact />}
      {replay.data && <Replayed view={replay.data} />}
    </div>
  );
}

function Replayed({ view }: { view: ReplayView }) {
  return (
    <div className="stack tight">
      <p role="status">Of {plural(view.looked_at, "past decision")}, {view.looked_at - view.same} would be concluded otherwise{view.cornerstones.length ? `, and ${plural(view.cornerstones.length, "cornerstone")}` : ""}.</p>
      {view.problems.map((each) => <p key={each} className="field-problem">{each}</p>)}
      {view.cornerstones.map((each) => <p key={`${each.type}/${each.task}/${each.rule}`} className="trial-breaks">The cornerstone of rule {each.rule} would conclude {each.new_exlet || "nothing"} instead of {each.exlet || "nothing"}.</p>)}
      {view.changed.length > 0 && (
        <details>
          <summary>{plural(view.changed.length, "decision")}</summary>
          <table className="plain-table">
            <thead><tr><th>Case</th><th>Was</th><th>Would be</th></tr></thead>
            <tbody>{view.changed.slice(0, 100).map((each) => <tr key={each.decision}><td><Link to="/cases/$case" params={{ case: each.case }}>{each.case}</Link></td><td>{each.exlet || "nothing"}</td><td>{each.new_exlet || "nothing"}</td></tr>)}</tbody>
          </table>
        </details>
      )}
    </div>
  );
}

/** The repairs that the page for teaching offers: those of this set, and those that are shipped. */
function RepairSelect({ ids, set, repairs, value, onChange }: { ids: { id: string }; set: RuleSetView; repairs: readonly Repair[]; value: string; onChange: (exlet: string) => void }) {
  const own = repairs.filter((each) => each.own).map((each) => each.name);
  const shipped = repairs.filter((each) => !each.own).map((each) => each.name);
  const unknown = value && !own.includes(value) && !shipped.includes(value) ? [value] : [];
  const options = (names: readonly string[]) => names.map((each) => <option key={each}>{each}</option>);
  return (
    <select {...ids} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">nothing</option>
      {options(unknown)}
      {own.length > 0 && <optgroup label={`Of ${setWords(set.name)}`}>{options(own)}</optgroup>}
      {shipped.length > 0 && <optgroup label="Shipped">{options(shipped)}</optgroup>}
    </select>
  );
}

function ChangeDialog({ set, type, task, rule, onClose, onDone }: { set: RuleSetView; type: string; task: string; rule: Rule; onClose: () => void; onDone: (said: string) => void }) {
  const client = useQueryClient();
  // What the author has not touched is null, and follows the rule: a change that somebody else makes to it is not undone.
  const [written, setWritten] = useState<{ condition: string | null; exlet: string | null; note: string | null }>({ condition: null, exlet: null, note: null });
  const { condition = rule.condition, exlet = rule.exlet ?? "", note = rule.note ?? "" } = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== null)) as Partial<Record<keyof typeof written, string>>;
  const write = (part: Partial<typeof written>) => setWritten((before) => ({ ...before, ...part }));
  // The version that the author looks at: what somebody else saves meanwhile is not overwritten.
  const [basis, setBasis] = useState(set.version);
  const paths = useQuery(contextPathsQuery(set.name, type, task));
  const repairs = useRepairs(set.name, undefined);
  const chosen = repairs.find((each) => each.name === exlet);
  const change = { rule: rule.id, type: type as never, task, condition: condition === rule.condition ? null : condition, exlet: exlet === (rule.exlet ?? "") ? null : exlet, note: note === (rule.note ?? "") ? null : note, expected: basis, flow: chosen && !chosen.own && exlet !== (rule.exlet ?? "") ? chosen.flow : null };
  const save = useMutation({
    mutationFn: () => changeRule(set.name, change),
    onSuccess: (made) => { onDone(`Rule ${rule.id} is changed: version ${made.version}`); onClose(); },
    // Refused because of what somebody else saved: read it, so that it can be told here.
    onError: () => client.invalidateQueries({ queryKey: ["rules"] }),
  });
  const conflict = set.version !== basis;
  const same = condition === rule.condition && exlet === (rule.exlet ?? "") && note === (rule.note ?? "");
  return (
    <Dialog title={`Change rule ${rule.id}`} open wide onClose={onClose} footer={<><button type="button" className="button" onClick={onClose}>Not now</button><button type="button" className="button primary" disabled={same || save.isPending || conflict} onClick={() => save.mutate()}>Save</button></>}>
      <div className="field"><span className="field-label">Condition</span><CodeView text={condition} label="Condition" language="cel" oneLine onChange={(text) => write({ condition: text })} complete={(before) => (paths.data ?? []).filter((each) => each.path.startsWith(/[\w.]*$/.exec(before)?.[0] ?? "")).slice(0, 50).map((each) => ({ label: each.path, detail: each.types.join(" or ") }))} /></div>
      <Field label="Exlet" hint={<>The repair (<Word of="exlet" />) that is done where the condition holds.</>}>{(ids) => <RepairSelect ids={ids} set={set} repairs={repairs} value={exlet} onChange={(next) => write({ exlet: next })} />}</Field>
      {exlet && chosen && exlet !== (rule.exlet ?? "") && <ExletSteps flow={chosen.flow} />}
      {exlet && exlet === (rule.exlet ?? "") && set.rules?.exlets?.[exlet] && <p className="field-hint">To do other steps under the same name, close this and choose “Edit the exlet”.</p>}
      <Field label="Note">{(ids) => <textarea {...ids} rows={2} value={note} onChange={(event) => write({ note: event.target.value })} />}</Field>
      {set.name === "*" && <p className="field-hint">The default rules are read in all projects: so are the condition, the exlet and the note.</p>}
      <Past set={set} type={type} task={task} rule={rule.id} change={{ condition, exlet }} />
      {conflict && (
        <div className="conflict" role="alert">
          <p><strong>Somebody else has changed these rules meanwhile.</strong> You began with version {basis}; now it is version {set.version}, where rule {rule.id} reads <code>{rule.condition}</code>. What you wrote is kept here.</p>
          <button type="button" className="button small primary" onClick={() => { save.reset(); setBasis(set.version); }}>Go on with version {set.version}</button>
        </div>
      )}
      {save.error && !conflict && <ErrorState error={save.error} compact />}
    </Dialog>
  );
}
