/** The exlets of a set: what each does, and how often it helped. A row is opened to read its steps, and to change them. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/session";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import { primitivesOf, stepsOf, titleOf } from "@/components/recovery/exlets";
import { exletResultsQuery, type Flow, type RuleSetView } from "@/components/recovery/queries";
import { treeKey, treeWords } from "@/components/recovery/rule-walk";
import { EmptyState } from "@/components/states-of-page";
import { Word } from "@/components/word";
import { cannotEdit, EditExlet, rulesWith } from "./edit-exlet";

const route = getRouteApi("/rules/$name");

/** Its steps in their order; of one with branches or loops what it may do. */
export function stepsInWords(flow: Flow): string {
  const steps = stepsOf(flow);
  if (steps) return steps.map((each) => titleOf(each.do)).join(", then ");
  const done = [...new Set(primitivesOf(flow))];
  return done.length ? `several, with ${done.join(", ")}` : "several";
}

export function Exlets({ set }: { set: RuleSetView }) {
  const { exlet: at } = route.useSearch();
  const navigate = route.useNavigate();
  const results = useQuery(exletResultsQuery);
  const exlets = Object.entries(set.rules?.exlets ?? {});
  if (!exlets.length) return <EmptyState title="This set has no exlets of its own" icon="tool">Its rules use the exlets of the default rules.</EmptyState>;
  const open = (exlet: string | undefined) => void navigate({ search: (before) => ({ ...before, exlet }) });
  const chosen = at === undefined ? undefined : set.rules?.exlets?.[at];
  return (
    <WithDetails
      details={
        chosen && (
          <DetailsPane title={chosen.name} label={`Exlet ${chosen.name}`} onClose={() => open(undefined)}>
            <ExletDetails key={chosen.name} set={set} flow={chosen} />
          </DetailsPane>
        )
      }
    >
      <div className="scrolls" role="region" aria-label="Exlets" tabIndex={0}>
        <table className="plain-table framed">
          <thead><tr><th><Word of="exlet">Exlet</Word></th><th>Steps</th><th>Helped</th></tr></thead>
          <tbody>
            {exlets.map(([name, flow]) => {
              const result = results.data?.find((each) => each.exlet === name);
              return (
                <tr key={name} aria-current={name === at || undefined}>
                  <td><button type="button" className="link-button" aria-expanded={name === at} onClick={() => open(name === at ? undefined : name)}>{name}</button><br /><span className="muted">{flow.description}</span></td>
                  <td>{stepsInWords(flow)}</td>
                  <td className="nowrap">{result ? `${result.recovered} of ${result.known}, in ${plural(result.groups, "cause")}` : <span className="muted">not tried yet</span>}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </WithDetails>
  );
}

/** What it does, whole, the rules that do it, and the way to change it. */
function ExletDetails({ set, flow }: { set: RuleSetView; flow: Flow }) {
  const rules = rulesWith(set.rules, flow.name);
  return (
    <>
      {flow.description && <p>{flow.description}</p>}
      <ExletSteps flow={flow} />
      <EditButton set={set} flow={flow} />
      <h3>Rules that do it</h3>
      {rules.length === 0 && <p className="muted">None of this set.</p>}
      <ul className="stack tight">
        {rules.map(({ type, task, rule }) => (
          <li key={`${type}/${task}/${rule.id}`}>
            <Link to="/rules/$name" params={{ name: set.name }} search={{ tree: treeKey(type, task), rule: rule.id }}>rule {rule.id}, {treeWords(type, task)}</Link> <code>{rule.condition}</code>
          </li>
        ))}
      </ul>
    </>
  );
}

export function EditButton({ set, flow }: { set: RuleSetView; flow: Flow | undefined }) {
  const may = useMay("put_rules");
  const [editing, setEditing] = useState(false);
  if (!may || !flow) return null;
  const why = cannotEdit(set, flow);
  if (why) return <p className="muted">{why}</p>;
  return (
    <div className="row wrap">
      <button type="button" className="button small" onClick={() => setEditing(true)}>
        <Icon name="tool" size={14} /> Edit the exlet
      </button>
      {editing && <EditExlet set={set} flow={flow} onClose={() => setEditing(false)} />}
    </div>
  );
}
