/** What has completed although items of it failed: nobody has to look at it, and nothing else says so. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, ask } from "@/api/client";
import { failedText } from "@/components/case-progress";
import { Panel } from "@/components/page";
import { Time } from "@/components/time";

const SHOWN = 6;
const WHERE = "status == 'completed' && failed > 0 && ended > ago('1 day') && parent == null && mends == null";

const withFailedItems = queryOptions({
  queryKey: ["overview", "completed with failed items"],
  queryFn: ({ signal }) => ask(api.GET("/api/v1/cases", { params: { query: { where: WHERE, limit: SHOWN } }, signal })),
});

export function CompletedPanel() {
  const found = useQuery(withFailedItems).data ?? [];
  if (!found.length) return null;
  return (
    <Panel title="Completed, though items failed" className="flush" actions={<Link to="/cases" search={{ where: WHERE }}>All of the last day</Link>}>
      <ul className="rows" aria-label="Cases that completed, though items failed">
        {found.map((each) => (
          <li key={each.id}>
            <Link to="/cases/$case" params={{ case: each.id }} search={{ view: "items", state: "failed" }} className="home-completed">
              <span className="clip">{each.id}</span>
              <span>completed, {failedText(each)}</span>
              <span className="muted">
                <Time at={each.ended_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
