/** The newest cases that run, with how far each is. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { casesQuery, RUNNING, type CaseView } from "@/api/queries";
import { caseState } from "@/api/states";
import { differingInputs, inputsText } from "@/components/case-inputs";
import { CaseProgress } from "@/components/case-progress";
import { Panel } from "@/components/page";
import { ErrorState, Loading } from "@/components/states-of-page";
import { StateBadge } from "@/components/state-badge";
import { waitsForPerson } from "@/components/task-link";
import { Duration } from "@/components/time";

/** What really runs stands before what waits for a person. */
function workFirst(cases: readonly CaseView[]): CaseView[] {
  const held = (each: CaseView) => Number(caseState(each) !== "running");
  return cases.toSorted((one, other) => held(one) - held(other));
}

export function RunningPanel() {
  const query = useInfiniteQuery(casesQuery({ where: RUNNING }));
  // That a case has ended is told before the list without it is there.
  const cases = workFirst((query.data?.pages[0]?.data ?? []).filter((each) => each.status === "running")).slice(0, 12);
  const differing = differingInputs(cases);
  return (
    <Panel title="Not over yet" className="flush" actions={<Link to="/cases" search={{ where: "status == 'running'" }}>All that are not over</Link>}>
      {query.isPending && <Loading />}
      {query.isError && <ErrorState error={query.error} />}
      {query.isSuccess && cases.length === 0 && <p className="panel-note muted">No case runs.</p>}
      <ul className="rows" aria-label="Cases that run">
        {cases.map((each) => (
          <li key={each.id}>
            <Link to="/cases/$case" params={{ case: each.id }} className="home-case">
              <span className="clip home-case-id" title={`${each.id}\n${inputsText(each).whole}`.trim()}>
                {each.id} <span className="muted">{inputsText(each, differing.get(each.flow)).short}</span>
              </span>
              <span title={waitsForPerson(each) || undefined}>
                <StateBadge state={caseState(each)} />
              </span>
              <CaseProgress view={each} />
              <span className="muted home-case-time">
                <Duration from={each.started_at} to={each.ended_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
