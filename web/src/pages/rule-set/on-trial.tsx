/** Rules on trial: how often each would have decided, and whether that agrees with what was done. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/session";
import { ConfirmDialog } from "@/components/dialog";
import { plural } from "@/components/format";
import { agreementQuery, decisionQuery, promoteRule, type RuleSetView, type TrialAgreement } from "@/components/recovery/queries";
import { WhatItDoes } from "@/components/recovery/what-it-does";
import { treeKey, treesOf, treeWords } from "@/components/recovery/rule-walk";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { toast } from "@/components/toasts";

export function OnTrial({ set }: { set: RuleSetView }) {
  const client = useQueryClient();
  const agreement = useQuery(agreementQuery(set.name));
  const mayPromote = useMay("promote_rule");
  const [asked, setAsked] = useState<TrialAgreement | null>(null);
  const onTrial = treesOf(set.rules?.trees as Parameters<typeof treesOf>[0]).flatMap(({ type, task, tree }) => Object.values(tree.rules).filter((rule) => rule.passive).map((rule) => ({ type, task, rule })));
  return (
    <Loaded query={agreement}>
      {(found) => {
        if (!onTrial.length) return <EmptyState title="No rule is on trial" icon="check">A rule that is saved on trial is asked and recorded here, and does nothing, until somebody puts it in force.</EmptyState>;
        return (
          <>
            <table className="plain-table framed">
              <thead><tr><th>Rule</th><th>Would do</th><th>Fired</th><th>Agreed</th><th>Helped</th><th>Nothing was done</th><th>Otherwise</th><th><span className="visually-hidden">Acts</span></th></tr></thead>
              <tbody>
                {onTrial.map(({ type, task, rule }) => {
                  const each = found.find((one) => one.type === type && one.task === task && one.rule === rule.id) ?? { type: type as TrialAgreement["type"], task, rule: rule.id, condition: rule.condition, exlet: rule.exlet ?? "", fired: 0, agreed: 0, nothing: 0, otherwise: [], helped: 0 };
                  return (
                    <tr key={`${type}/${task}/${rule.id}`}>
                      <td><Link to="/rules/$name" params={{ name: set.name }} search={{ tree: treeKey(type, task), rule: rule.id }}>rule {rule.id}, {treeWords(type, task)}</Link><br /><code>{each.condition}</code></td>
                      <td>{each.exlet}</td>
                      <td>{each.fired}</td>
                      <td>{each.agreed}</td>
                      <td>{each.helped}</td>
                      <td>{each.nothing}</td>
                      <td>{each.otherwise.length ? <Otherwise first={each.otherwise[0] as string} count={each.otherwise.length} /> : 0}</td>
                      <td>{mayPromote && <button type="button" className="button small" onClick={() => setAsked(each)}>Put in force</button>}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
            <ConfirmDialog
              title={`Put rule ${asked?.rule} in force`}
              open={asked !== null}
              act="Put in force"
              onClose={() => setAsked(null)}
              onAct={async () => {
                if (!asked) return;
                await promoteRule(set.name, asked.rule, asked.type, asked.task);
                toast("good", `Rule ${asked.rule} is in force`);
                void client.invalidateQueries({ queryKey: ["rules"] });
              }}
              will={<><p>From now on <strong>{asked?.exlet}</strong> is done where it holds. On trial it fired {plural(asked?.fired ?? 0, "time")} and agreed {plural(asked?.agreed ?? 0, "time")} with what was done.</p>{asked?.exlet && <WhatItDoes set={set} exlet={asked.exlet} />}</>}
            />
          </>
        );
      }}
    </Loaded>
  );
}

/** The one where something else was done is the next case to teach. */
function Otherwise({ first, count }: { first: string; count: number }) {
  const decision = useQuery(decisionQuery(first));
  if (!decision.data) return <>{count}</>;
  return <Link to="/failures/$group/teach" params={{ group: decision.data.group }} search={{ decision: first }}>{count}: teach from it</Link>;
}
