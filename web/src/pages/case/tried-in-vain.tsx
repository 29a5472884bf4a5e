/** Above a case that has failed, or waits for a person: the repairs that were tried and did not help. */
import { personText } from "@/components/person-text";
import { Link } from "@tanstack/react-router";
import { FirstRows } from "@/components/and-more";
import { plural } from "@/components/format";
import type { DecisionView } from "@/components/recovery/queries";
import { ruleWords, treeKey } from "@/components/recovery/rule-walk";

type Told = Pick<DecisionView, "item" | "type" | "tree" | "rules" | "rule" | "exlet" | "state" | "result" | "ordered_by">;

export interface VainRepair {
  decision: Told;
  count: number;
}

const SHOWN = 4;

/** What was done about the items that are not mended, and how often; `decisions` come the newest first. */
export function triedInVain(decisions: readonly Told[]): VainRepair[] {
  const mended = new Set<string | null>();
  const seen = new Set<string | null>();
  const found = new Map<string, VainRepair>();
  for (const each of decisions) {
    const done = each.exlet !== "" && ["done", "failed"].includes(each.state);
    const inVain = done && (each.result === "failed" || each.state === "failed");
    if (!seen.has(each.item) && done && !inVain) mended.add(each.item);
    if (each.state !== "passive") seen.add(each.item);
    if (!inVain || mended.has(each.item)) continue;
    const key = [each.type, each.rules, each.tree, each.rule, each.exlet].join(" ");
    found.set(key, { decision: found.get(key)?.decision ?? each, count: (found.get(key)?.count ?? 0) + 1 });
  }
  return [...found.values()];
}

export function TriedInVain({ repairs }: { repairs: readonly DecisionView[] }) {
  const found = triedInVain(repairs);
  if (!found.length) return null;
  return (
    <ul className="stack tight" aria-label="What was tried">
      <FirstRows rows={found} shown={SHOWN}>
        {({ decision, count }) => (
        <li key={[decision.type, decision.rules, decision.tree, decision.rule, decision.exlet].join(" ")}>
          {decision.rules && decision.rule !== null ? (
            <>
              <Link to="/rules/$name" params={{ name: decision.rules }} search={{ tree: treeKey(decision.type, decision.tree), rule: decision.rule }}>{ruleWords({ ...decision, task: decision.tree }, "Rule")}</Link> (<strong>{decision.exlet}</strong>) was tried
            </>
          ) : (
            <><strong>{decision.exlet}</strong>, chosen by {personText(decision.ordered_by) || "a person"}, was tried</>
          )}{" "}
          {count === 1 ? "once" : plural(count, "time")} and did not help.
        </li>
        )}
      </FirstRows>
    </ul>
  );
}
