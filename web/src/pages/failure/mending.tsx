/** What comes of a repair that somebody has ordered: what runs, until it is over, and then what it has helped. */
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { messageOf } from "@/api/errors";
import type { State } from "@/api/states";
import { plural } from "@/components/format";
import { caseOutcomes } from "@/components/recovery/case-outcomes";
import { itemWords } from "@/components/recovery/decision-words";
import { decisionQuery, UNDER_WAY, type DecisionView } from "@/components/recovery/queries";
import { StateBadge } from "@/components/state-badge";

/** One of the failures that were meant: what the server has made of the order, or why it refused it; neither before it is asked. */
export interface Ordered {
  decision: DecisionView;
  made?: DecisionView;
  refused?: unknown;
}

const AGAIN_MS = 2000;

type Told = Pick<DecisionView, "state" | "result" | "exlet">;

/** Whether it is still to be seen what comes of it. */
export function isUnderWay({ state, result, exlet }: Told): boolean {
  return state === "running" || result === UNDER_WAY || (state === "done" && exlet !== "" && result === "");
}

function outcomeOf({ made, refused }: Ordered): { state: State; word: string } {
  if (refused !== undefined) return { state: "failed", word: messageOf(refused) };
  if (!made) return { state: "waiting", word: "comes next" };
  const [found] = caseOutcomes([made], new Set([made.id]), 0, new Map());
  return found ?? { state: "repairing", word: "under repair" };
}

export function Mending({ ordered, exlet }: { ordered: readonly Ordered[]; exlet: string }) {
  const now = useQueries({
    queries: ordered.map(({ made }) => ({ ...decisionQuery(made?.id ?? ""), initialData: made, staleTime: 0, refetchInterval: ({ state }: { state: { data?: DecisionView } }) => (state.data && isUnderWay(state.data) ? AGAIN_MS : (false as const)) })),
  });
  const rows = ordered.map((each, at): Ordered => ({ ...each, made: each.made && (now[at]?.data ?? each.made) }));
  const open = rows.filter(({ made, refused }) => refused === undefined && (!made || isUnderWay(made))).length;
  const ended = rows.map(outcomeOf);
  const good = ended.filter(({ state }) => state === "done").length;
  return (
    <>
      <p role="status">
        {open > 0 ? (
          <>
            <strong>{exlet}</strong> runs now for {open === 1 && rows.length === 1 ? "this case" : `${open} of ${plural(rows.length, "case")}`}. You may close this: the repair goes on. What comes of it is shown here, on the page of the case, and in the list of failures of this cause.
          </>
        ) : (
          <>
            <strong>{exlet}</strong> is over: {good === rows.length ? (good === 1 ? "it has helped." : `it has helped in all ${good} cases.`) : `it has helped in ${good} of ${plural(rows.length, "case")}.`}
          </>
        )}
      </p>
      <table className="plain-table">
        <thead><tr><th>Case</th><th>What came of it</th></tr></thead>
        <tbody>
          {rows.map((each, at) => (
            <tr key={each.decision.id}>
              <td>
                <Link to="/cases/$case" params={{ case: each.decision.case }} search={each.decision.item ? { item: each.decision.item } : {}}>{each.decision.case}</Link> {itemWords(each.decision)}
              </td>
              <td><StateBadge state={ended[at]?.state ?? "waiting"} word={ended[at]?.word} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
