/** Cases that are started by the clock. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMay } from "@/api/session";
import { DataTable, type Column } from "@/components/data-table";
import { WithDetails } from "@/components/drawer";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { ScheduleDetails } from "./schedule-details";
import { ScheduleDialog } from "./schedule-dialog";
import { schedulesQuery, whenText, type Schedule } from "./queries";
import "@/styles/resources.css";

const route = getRouteApi("/schedules");

const COLUMNS: Column<Schedule>[] = [
  { id: "name", narrow: 1, header: "Schedule", width: "minmax(130px, 1.2fr)", value: (row) => row.spec.name, cell: (row) => <Link to="/schedules" search={{ name: row.spec.name }}>{row.spec.name}</Link> },
  { id: "flow", header: "Flow", width: "minmax(110px, 1fr)", value: (row) => row.spec.flow, cell: (row) => <Link to="/flows/$name" params={{ name: row.spec.flow }}>{row.spec.flow}</Link> },
  { id: "when", narrow: 2, header: "When", width: "minmax(330px, 1.4fr)", cell: (row) => <span className="mono">{whenText(row.spec)}</span> },
  { id: "state", narrow: 1, header: "State", width: "104px", value: (row) => row.state, cell: (row) => <StateBadge of={row.state === "over" ? "ended" : row.state} word={row.state} /> },
  { id: "next", narrow: 2, header: "Next", width: "100px", value: (row) => row.next[0] ?? null, cell: (row) => (row.not_served && row.next.length ? <span className="muted" title={row.not_served}>not now</span> : <Time at={row.next[0]} none={row.state === "paused" ? "paused" : "never"} />) },
  { id: "last", header: "Last case", width: "minmax(150px, 1.3fr)", cell: (row) => (row.last_case ? <span className="row"><StateBadge of={row.last_status} /> <Link to="/cases/$case" params={{ case: row.last_case }} className="clip">{row.last_case}</Link></span> : <span className="muted">none yet</span>) },
  { id: "problem", header: "", width: "minmax(60px, 1fr)", cell: (row) => { const told = row.problem || row.not_served; return told && <span title={told}>{told}</span>; } },
];

export default function SchedulesPage() {
  const { name, make } = route.useSearch();
  const navigate = route.useNavigate();
  const mayMake = useMay("put_schedule");
  const query = useQuery(schedulesQuery);
  const found = query.data?.find((each) => each.spec.name === name);
  const button = mayMake && (
    <Link from="/schedules" to="/schedules" search={(before) => ({ ...before, make: true as const })} className="button primary">
      <Icon name="plus" size={14} /> New schedule
    </Link>
  );
  return (
    <Page title="Schedules" lead="Cases that are started by the clock." fill actions={query.data?.length ? button : undefined}>
      <WithDetails details={found ? <ScheduleDetails key={found.spec.name} schedule={found} onClose={() => void navigate({ search: {} })} /> : null}>
        <Loaded query={query} lines={6}>
          {(schedules) => (
            <DataTable
              label="Schedules"
              rows={schedules}
              columns={COLUMNS}
              rowId={(row) => row.spec.name}
              at={name ?? ""}
              onOpen={(row) => void navigate({ search: { name: row.spec.name } })}
              empty={
                <EmptyState title="No schedule yet" icon="schedules" action={button}>
                  A schedule starts a flow every night, every hour, or whenever you say. A flow can also bring its own: <code>on: schedule:</code>
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </WithDetails>
      {make && mayMake && <ScheduleDialog open onClose={() => void navigate({ search: (before) => ({ ...before, make: undefined }) })} onMade={(made) => void navigate({ search: { name: made } })} />}
    </Page>
  );
}
