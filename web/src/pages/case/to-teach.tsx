/** What failed in a case and no rule is there for: where teaching one begins. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { Schemas } from "@/api/client";
import { caseDecisionsQuery, type CaseView } from "@/api/queries";
import { useMay } from "@/api/session";
import { failedText } from "@/components/case-progress";
import { Icon } from "@/components/icon";
import { itemText } from "@/components/item-text";
import { Menu } from "@/components/menu";
import { conclusionQuery, ruleSetQuery, type DecisionView } from "@/components/recovery/queries";

type Evaluation = Pick<Schemas["EvaluationView"], "conclusion" | "trials">;

const CAUSES_ASKED = 8;

/** Of a case that has completed all the same, also what nobody has to take up. */
const DONE_WITH = new Set(["rejected", "run-again"]);

/** The newest failure of each cause that no rule has mended: first those that nobody has taken up. `decisions` come the newest first. */
export function newestOfCauses(decisions: readonly DecisionView[], wentOn: boolean): DecisionView[] {
  const open = decisions.filter((each) => each.group && !each.replaced_by && each.result !== "recovered" && !DONE_WITH.has(each.handling) && (wentOn || each.handling !== "settled"));
  const newest = [...new Map(open.toReversed().map((each) => [each.group, each])).values()];
  return newest.toSorted((one, other) => Number(isTakenUp(one)) - Number(isTakenUp(other)) || open.indexOf(one) - open.indexOf(other));
}

function isTakenUp(decision: DecisionView): boolean {
  return Boolean(decision.exlet) && decision.state !== "waiting";
}

/** Whether a rule was taught for it since: one that decides it now, or would on trial, and did not then. */
export function isTaught(decision: DecisionView, now: Evaluation | undefined): boolean {
  const then = [decision, ...decision.trials].map((each) => `${each.rules} ${each.rule}`);
  return [now?.conclusion, ...(now?.trials ?? [])].some((each) => each?.exlet && !then.includes(`${each.rules} ${each.rule}`));
}

/** What a rule can be taught for: of several causes those without a new rule, unless each of them has one. `undefined` as long as
 * that is not known. */
export function useFailuresToTeach(view: CaseView | undefined): readonly DecisionView[] | null | undefined {
  const may = useMay("add_rule");
  const mayEvaluate = useMay("evaluate_rules");
  const wentOn = view !== undefined && failedText(view) !== "";
  const wanted = may && view !== undefined && (view.status === "failed" || view.held.length > 0 || wentOn);
  const decisions = useQuery({ ...caseDecisionsQuery(view?.id ?? ""), enabled: wanted });
  const causes = newestOfCauses(decisions.data ?? [], wentOn).slice(0, CAUSES_ASKED);
  const asks = wanted && mayEvaluate && causes.length > 1;
  const sets = useQueries({ queries: causes.map((each) => ({ ...ruleSetQuery(each.flow), enabled: asks })) });
  const now = useQueries({ queries: causes.map((each, at) => ({ ...conclusionQuery(each.flow, each.id, sets[at]?.data?.version ?? 0), enabled: asks && sets[at]?.isSuccess === true })) });
  if (!wanted) return null;
  if (decisions.isPending || (asks && now.some((each, at) => each.isPending && !sets[at]?.isError))) return undefined;
  const untaught = causes.filter((each, at) => !isTaught(each, now[at]?.data));
  return causes.length ? (untaught.length ? untaught : causes.slice(0, 1)) : null;
}

/** To the page that teaches a rule for what failed; of several causes a person says which. */
export function TeachAct({ failures }: { failures: readonly DecisionView[] }) {
  const navigate = useNavigate();
  const [first] = failures;
  if (!first) return null;
  const to = (failure: DecisionView) => ({ to: "/failures/$group/teach", params: { group: failure.group }, search: { decision: failure.id } }) as const;
  if (failures.length === 1) {
    return (
      <Link {...to(first)} className="button">
        <Icon name="rules" size={14} /> Teach a repair
      </Link>
    );
  }
  return (
    <Menu
      label="Causes of the failures"
      acts={failures.map((each) => ({ id: each.id, label: each.fault?.message || each.note || each.group, hint: each.item ? itemText({ item: each.item, element: each.element }) : undefined, run: () => void navigate(to(each)) }))}
    >
      <Icon name="rules" size={14} /> Teach a repair ({failures.length} causes)
    </Menu>
  );
}
