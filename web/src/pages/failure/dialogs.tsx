/** A repair for these cases alone, and a cause that is handed to a person. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { messageOf } from "@/api/errors";
import { ConfirmDialog, Dialog } from "@/components/dialog";
import { Field } from "@/components/field";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { itemWords, settledText } from "@/components/recovery/decision-words";
import { caseValuesOf, flowOf, isWhole, variablesOf, type ExletDraft } from "@/components/recovery/exlets";
import { RepairCards, useRepairs } from "@/components/recovery/repair-cards";
import { askAPerson, decisionQuery, groupDecisionsQuery, mendOnce, ruleSetQuery, type DecisionView, type FailureView } from "@/components/recovery/queries";
import { Loading } from "@/components/states-of-page";
import { StateBadge } from "@/components/state-badge";
import { toast } from "@/components/toasts";
import { skips, SkippedUses } from "./skipped-uses";

const Composer = lazy(() => import("@/components/recovery/composer"));

type Outcome = { decision: DecisionView; said: string; good: boolean };

interface MendProps {
  /** The failure that it was opened for. */
  at: DecisionView;
  /** Those of the cause that waited then. */
  waiting: readonly DecisionView[];
  /** Whether somebody has chosen the one, and not only the cause. */
  isChosen: boolean;
  view: FailureView;
  onClose: () => void;
}

/** What has become of failures since a dialog was opened for them, by their ids. */
function useSettledSince(group: string, decisions: readonly DecisionView[]): Map<string, string> {
  const now = new Map(useQuery(groupDecisionsQuery(group)).data?.map((each) => [each.id, each]));
  return new Map(decisions.flatMap((was) => {
    const said = settledText(was, now.get(was.id));
    return said ? [[was.id, said]] : [];
  }));
}

function failureWords(decision: DecisionView): string {
  return [decision.case, itemWords(decision)].filter(Boolean).join(" ");
}

function SettledNotice({ settled }: { settled: readonly string[] }) {
  if (!settled.length) return null;
  return (
    <div className="notice" role="status">
      {settled.map((each) => <p key={each}>{each}</p>)}
    </div>
  );
}

export function MendOnceDialog(props: MendProps) {
  const { waiting } = props;
  const client = useQueryClient();
  const [all, setAll] = useState(waiting.length > 1 && !props.isChosen);
  const [picked, setPicked] = useState("");
  const [composed, setComposed] = useState<ExletDraft | null>(null);
  const [busy, setBusy] = useState(false);
  const [outcomes, setOutcomes] = useState<Outcome[]>([]);
  const set = useQuery(ruleSetQuery(props.at.flow));
  const whole = useQuery(decisionQuery(props.at.id)); // lists leave the context out
  const repairs = useRepairs(props.at.flow, props.view.group);
  const exlet = composed ? (composed.steps.length && isWhole(composed.steps) ? composed.name.trim() : "") : picked;
  const meant = all && waiting.length > 0 ? waiting : [props.at];
  const since = useSettledSince(props.view.group.id, meant);
  const settled = busy ? new Map<string, string>() : since; // what is being done here settles them, too
  const chosen = meant.filter((each) => !settled.has(each.id));
  const run = async () => {
    setBusy(true);
    const known = set.data?.exlets.includes(exlet) ?? false;
    const flow = composed ? flowOf({ ...composed, name: exlet }) : known ? null : (repairs.find((each) => each.name === exlet)?.flow ?? null);
    for (const decision of chosen) {
      try {
        const done = await mendOnce(decision, exlet, flow);
        setOutcomes((before) => [...before, { decision, said: done.result || "it is under way", good: true }]);
      } catch (error) {
        setOutcomes((before) => [...before, { decision, said: messageOf(error), good: false }]);
      }
    }
    setBusy(false);
    void client.invalidateQueries({ queryKey: ["failures"] });
    void client.invalidateQueries({ queryKey: ["decisions"] });
  };
  return (
    <Dialog
      title={`Mend once: ${meant.length === 1 ? failureWords(meant[0] as DecisionView) : plural(meant.length, "failure that waits", "failures that wait")}`}
      open
      wide
      onClose={props.onClose}
      footer={
        outcomes.length ? (
          <button type="button" className="button primary" onClick={props.onClose} disabled={busy}>Done</button>
        ) : (
          <>
            <button type="button" className="button" onClick={props.onClose}>Not now</button>
            <button type="button" className="button primary" disabled={!exlet || busy || chosen.length === 0} onClick={() => void run()}>
              {chosen.length === 0 ? "Nothing is left to mend" : exlet ? `Do ${exlet} to ${plural(chosen.length, "case")}` : "Choose a repair"}
            </button>
          </>
        )
      }
    >
      {outcomes.length === 0 ? (
        <>
          <SettledNotice settled={[...settled.values()]} />
          <p>The repair is done now, to {chosen.length === 1 ? failureWords(chosen[0] as DecisionView) : plural(chosen.length, "failure that waits", "failures that wait")}. No rule is made of it: the next case that fails like this waits again.{composed && " The exlet is kept, and can be used again by its name."}</p>
          {waiting.length > 1 && (
            <label className="check-label">
              <input type="checkbox" checked={all} onChange={(event) => setAll(event.target.checked)} /> all {waiting.length} that wait
            </label>
          )}
          <div className="row">
            <h3>{composed ? "An exlet of your own" : "Repairs"}</h3>
            <span className="spread" />
            <button type="button" className="button small" onClick={() => setComposed(composed ? null : { name: "", description: "", steps: [] })}>
              <Icon name={composed ? "left" : "plus"} size={14} /> {composed ? "Choose a repair" : "Compose an exlet"}
            </button>
          </div>
          {composed ? (
            <Suspense fallback={<Loading lines={6} />}>
              <Composer draft={composed} type={props.at.type} variables={variablesOf(whole.data?.context)} values={caseValuesOf(whole.data?.context)} onChange={setComposed} />
            </Suspense>
          ) : (
            <RepairCards repairs={repairs} chosen={picked} onChoose={setPicked} />
          )}
          {(composed ? composed.steps.some((each) => each.do === "force-complete") : skips(repairs.find((each) => each.name === picked)?.flow ?? null)) && (
            <SkippedUses case={props.at.case} task={props.at.task || props.at.item || ""} />
          )}
        </>
      ) : (
        <table className="plain-table">
          <thead><tr><th>Case</th><th>What came of it</th></tr></thead>
          <tbody>
            {outcomes.map((each) => (
              <tr key={each.decision.id}>
                <td>{each.decision.case}</td>
                <td><StateBadge state={each.good ? "repairing" : "failed"} word={each.said} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Dialog>
  );
}

const REASONS = ["The repair that was chosen does not help", "It is not clear what would help", "Somebody who knows this flow has to look"];

export function HandOverDialog({ decision, onClose }: { decision: DecisionView; onClose: () => void }) {
  const [note, setNote] = useState(REASONS[0] as string);
  const client = useQueryClient();
  const settled = useSettledSince(decision.group, [decision]);
  const act = async () => {
    await askAPerson(decision.id, note);
    toast("good", `An author is asked about ${decision.case}; it stands in the worklist`);
    void client.invalidateQueries({ queryKey: ["decisions"] });
  };
  return (
    <ConfirmDialog
      title={`Hand to a person: ${failureWords(decision)}`}
      open
      act="Ask an author"
      disabled={!note.trim()}
      onClose={onClose}
      onAct={act}
      will={
        <>
          <SettledNotice settled={[...settled.values()]} />
          <p>
            You say that <strong>{decision.exlet}</strong> was the wrong choice for {decision.case}, and do not know the right one. An author is asked: it stands in the worklist, under Failures, until somebody has answered it with another repair or a rule. Nothing is stopped.
          </p>
          <Field label="What should they know?" required>
            {(ids) => <textarea {...ids} rows={2} value={note} onChange={(event) => setNote(event.target.value)} />}
          </Field>
          <div className="row wrap">
            {REASONS.map((each) => (
              <button key={each} type="button" className="chip pick" onClick={() => setNote(each)}>{each}</button>
            ))}
          </div>
        </>
      }
    />
  );
}
