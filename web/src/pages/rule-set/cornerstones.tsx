/** Two cornerstones side by side: only what differs. */
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import type { RuleSetView } from "@/components/recovery/queries";
import { treeKey, treesOf, treeWords } from "@/components/recovery/rule-walk";
import { differing, shortValue } from "@/components/recovery/values";
import { EmptyState } from "@/components/states-of-page";
import { Word } from "@/components/word";

const route = getRouteApi("/rules/$name");

export function Cornerstones({ set }: { set: RuleSetView }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const trees = useMemo(() => treesOf(set.rules?.trees as Parameters<typeof treesOf>[0]), [set.rules]);
  const tree = trees.find((each) => treeKey(each.type, each.task) === search.tree) ?? trees[0];
  const rules = tree ? Object.values(tree.tree.rules).filter((each) => each.cornerstone) : [];
  const left = rules.find((each) => each.id === search.rule) ?? rules[0];
  const right = rules.find((each) => each.id === search.with) ?? rules.find((each) => each.id !== left?.id);
  if (!left || !tree) return <EmptyState title="No cornerstone is kept" icon="circle">Each rule that is taught from a failure keeps the case that it was made for, its cornerstone: no later change takes the rule away from it unnoticed.</EmptyState>;
  const rows = right ? differing(left.cornerstone, right.cornerstone) : [];
  const choose = (name: "rule" | "with", value: string) => void navigate({ search: (before) => ({ ...before, tree: treeKey(tree.type, tree.task), [name]: Number(value) }), replace: true });
  const picker = (label: string, name: "rule" | "with", value: number | undefined) => (
    <label className="check-label">
      <span className="muted">{label}</span>
      <select value={value} onChange={(event) => choose(name, event.target.value)}>
        {rules.map((each) => <option key={each.id} value={each.id}>rule {each.id}: {each.condition.slice(0, 60)}</option>)}
      </select>
    </label>
  );
  return (
    <div className="stack scrolls" role="region" aria-label="Cornerstones side by side" tabIndex={0}>
      <p className="muted">A <Word of="cornerstone" /> is the failure that a rule was made for. Here is how those of two rules differ.</p>
      <div className="row wrap">
        {trees.length > 1 && (
          <label className="check-label">
            <span className="muted">Tree</span>
            <select value={treeKey(tree.type, tree.task)} onChange={(event) => void navigate({ search: (before) => ({ ...before, tree: event.target.value, rule: undefined, with: undefined }) })}>
              {trees.map((each) => <option key={treeKey(each.type, each.task)} value={treeKey(each.type, each.task)}>{treeWords(each.type, each.task)}</option>)}
            </select>
          </label>
        )}
        {picker("Left", "rule", left.id)}
        {right && picker("Right", "with", right.id)}
      </div>
      {right ? (
        <table className="plain-table framed">
          <thead><tr><th>Path</th><th>Rule {left.id}: {left.exlet || "nothing"}</th><th>Rule {right.id}: {right.exlet || "nothing"}</th></tr></thead>
          <tbody>
            {rows.map((each) => (
              <tr key={each.path}>
                <td><code className="value-path">{each.path}</code></td>
                <td>{each.left === undefined ? <span className="muted">not there</span> : <code>{shortValue(each.left, 120)}</code>}</td>
                <td>{each.right === undefined ? <span className="muted">not there</span> : <code>{shortValue(each.right, 120)}</code>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p className="muted">Rule {left.id} is the only one with a cornerstone in this tree.</p>
      )}
      {right && rows.length === 0 && <p className="muted">They are the same.</p>}
    </div>
  );
}
