/** The cases that a case can be compared with: of the same flow, the last that completed before all others. */
import { useState } from "react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { casesQuery, type CaseView } from "@/api/queries";
import { caseState, wordOf } from "@/api/states";
import { differingInputs, inputsText } from "@/components/case-inputs";
import { plural } from "@/components/format";
import { StateBadge } from "@/components/state-badge";
import { Time } from "@/components/time";

const OFFERED = 6;
const MORE = 20;

export interface Candidates {
  cases: readonly CaseView[];
  /** The last of the flow that completed. */
  good: CaseView | undefined;
  known: boolean;
}

export function useCandidates(view: CaseView): Candidates {
  const others = `flow == '${view.flow.replaceAll("'", "\\'")}' && id != '${view.id}'`;
  const [newest, completed] = [useInfiniteQuery(casesQuery({ where: others })), useInfiniteQuery(casesQuery({ where: `${others} && status == 'completed'` }))];
  const good = completed.data?.pages[0]?.data[0];
  const near = (newest.data?.pages[0]?.data ?? []).filter((each) => each.id !== good?.id);
  return { good, cases: [...(good ? [good] : []), ...near], known: !newest.isPending && !completed.isPending };
}

export function CandidateList({ of, chosen, view, onChoose }: { of: Candidates; chosen: string | undefined; view: CaseView; onChoose: (id: string) => void }) {
  const [most, setMost] = useState(OFFERED);
  const offered = of.cases.filter((each, place) => place < most || each.id === chosen);
  const hidden = of.cases.length - offered.length;
  const differing = differingInputs([view, ...offered]).get(view.flow);
  return (
    <>
    <ul className="compare-cases" aria-label={`Other cases of ${view.flow}`}>
      {offered.map((each) => {
        const inputs = inputsText(each, differing);
        return (
          <li key={each.id}>
            <button type="button" aria-pressed={each.id === chosen} className="compare-case" title={inputs.whole} onClick={() => onChoose(each.id)}>
              <StateBadge state={caseState(each)} word={each.status === "running" ? undefined : wordOf(each.status)} />
              <span className="compare-case-id">{each.id}</span>
              <span className="clip">{inputs.short}</span>
              <span className="muted">
                started <Time at={each.started_at} />
                {each === of.good && ", the last that completed"}
              </span>
            </button>
          </li>
        );
      })}
    </ul>
    {hidden > 0 && (
      <button type="button" className="button quiet small" onClick={() => setMost(most + MORE)}>
        More: {plural(Math.min(hidden, MORE), "earlier case")}
      </button>
    )}
    </>
  );
}
