/** The steps of an exlet of a set, changed: saved as the next version of the set, for all of its rules that do this exlet. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Dialog } from "@/components/dialog";
import { caseValuesOf, flowOf, isWhole, stepsOf, variablesOf, type ExletDraft } from "@/components/recovery/exlets";
import { putExlet, type Flow, type Rule, type RuleSet, type RuleSetView } from "@/components/recovery/queries";
import { treesOf, treeWords } from "@/components/recovery/rule-walk";
import { ErrorState, Loading } from "@/components/states-of-page";
import { toast } from "@/components/toasts";

const Composer = lazy(() => import("@/components/recovery/composer"));

export interface RuleOfExlet {
  type: string;
  task: string;
  rule: Rule;
}

/** The rules of a set that do this exlet. */
export function rulesWith(set: RuleSet | null | undefined, exlet: string): RuleOfExlet[] {
  return treesOf(set?.trees as Parameters<typeof treesOf>[0]).flatMap(({ type, task, tree }) => Object.values(tree.rules).filter((rule) => rule.exlet === exlet).map((rule) => ({ type, task, rule })));
}

/** Why the steps cannot be changed here; empty where they can. */
export function cannotEdit(set: RuleSetView, flow: Flow): string {
  if (!stepsOf(flow)) return `${flow.name} does more than can be composed here. Write it in a file, under another name, and give it to a rule: mendflow rules change.`;
  if (set.hidden_cornerstones.length) return "Rules of this set were made for cases that you do not see: who sees their projects can change the steps.";
  return "";
}

export function EditExlet({ set, flow, onClose }: { set: RuleSetView; flow: Flow; onClose: () => void }) {
  const client = useQueryClient();
  const [begun] = useState(set); // what somebody else saves meanwhile is not overwritten
  const [draft, setDraft] = useState<ExletDraft>(() => ({ name: flow.name, description: flow.description ?? "", steps: stepsOf(flow) ?? [] }));
  const rules = rulesWith(set.rules, flow.name);
  const context = rules.find((each) => each.rule.cornerstone)?.rule.cornerstone ?? undefined;
  const ready = draft.steps.length > 0 && isWhole(draft.steps);
  const save = useMutation({
    mutationFn: () => putExlet(begun, { ...flow, body: flowOf(draft).body }),
    onSuccess: (made) => {
      toast("good", `${flow.name} is changed: version ${made.version} of these rules`);
      void client.invalidateQueries({ queryKey: ["rules"] });
      onClose();
    },
    onError: () => client.invalidateQueries({ queryKey: ["rules"] }),
  });
  return (
    <Dialog title={`Edit ${flow.name}`} open wide onClose={onClose} footer={<><button type="button" className="button" onClick={onClose}>Not now</button><button type="button" className="button primary" disabled={!ready || save.isPending} onClick={() => save.mutate()}>Save</button></>}>
      <p>
        It is saved as version {begun.version + 1} of these rules, and an earlier one can be restored.{" "}
        {rules.length > 0 && `From then on ${rules.map(({ type, task, rule }) => `rule ${rule.id}, ${treeWords(type, task)}`).join("; ")} ${rules.length === 1 ? "does" : "do"} these steps.`}
      </p>
      <Suspense fallback={<Loading lines={6} />}>
        <Composer draft={draft} isNamed type={rules[0]?.type ?? "abort"} variables={variablesOf(context)} values={caseValuesOf(context)} onChange={setDraft} />
      </Suspense>
      {draft.steps.length > 0 && !ready && <p className="field-problem">A step lacks what it needs: it is marked.</p>}
      {save.error && <ErrorState error={save.error} compact />}
    </Dialog>
  );
}
