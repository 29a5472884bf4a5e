/** What was taught for this cause before: a rule that was saved from this tab, and rules that have tried to mend it in vain. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMay } from "@/api/session";
import { plural } from "@/components/format";
import { ruleSetQuery, type FailureGroup, type RuleSetView } from "@/components/recovery/queries";
import { isRetired, ruleWords, treeKey, treesOf } from "@/components/recovery/rule-walk";
import type { SavedRule } from "./draft";

type Handled = FailureGroup["handled"][number];

/** The rules whose repair was done to failures of this cause, and failed each time. */
export function ineffectiveRules(group: Pick<FailureGroup, "handled">): Handled[] {
  return group.handled.filter((each) => each.rules && each.exlet && !each.passive && each.count > 0 && (each.results["failed"] ?? 0) === each.count);
}

/** Whether it still does what it did then. */
function stands(set: RuleSetView | null | undefined, type: string, each: Handled): boolean {
  const tree = treesOf(set?.rules?.trees as Parameters<typeof treesOf>[0]).find((one) => one.type === type && one.task === each.tree);
  const rule = tree?.tree.rules[String(each.rule)];
  return rule !== undefined && !isRetired(rule) && rule.exlet === each.exlet;
}

export function IneffectiveRulesNotice({ group }: { group: FailureGroup }) {
  const found = ineffectiveRules(group);
  const mayChange = useMay("change_rule");
  const [first] = found;
  const set = useQuery({ ...ruleSetQuery(first?.rules ?? ""), enabled: first !== undefined });
  const standing = found.filter((each) => each.rules === first?.rules && stands(set.data, group.type, each));
  if (!standing.length) return null;
  return (
    <div className="notice" role="note" aria-label="Rules that did not help">
      {standing.map((each) => (
        <p key={`${each.tree}/${each.rule}`}>
          {ruleWords({ ...each, type: group.type, task: each.tree }, "Rule")} takes this cause up already: it did <strong>{each.exlet}</strong> {plural(each.count, "time")}, and failed each time.{" "}
          {mayChange && <Link to="/rules/$name" params={{ name: each.rules }} search={{ tree: treeKey(group.type, each.tree), rule: each.rule, edit: true }}>Change rule {each.rule} instead</Link>}
        </p>
      ))}
    </div>
  );
}

/** The page opens at a rule that was saved earlier: what to do to teach one more stands first. */
export function SavedRuleNotice({ saved, onClear }: { saved: SavedRule; onClear: () => void }) {
  return (
    <div className="notice" role="note" aria-label="A rule is saved">
      <p>
        You have saved {ruleWords(saved)} for this cause; it is shown here as it was saved.{" "}
        <button type="button" className="button small primary" onClick={onClear}>Teach another rule</button>
      </p>
    </div>
  );
}
