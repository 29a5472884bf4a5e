import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { alertsQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import { useAct } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { CheckField } from "@/components/form-fields";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";

type Alert = Schemas["AlertView"];

const route = getRouteApi("/administration");
const TONE = { critical: "failed", warning: "repairing", info: "ready" } as const;

export function Alerts() {
  const { every } = route.useSearch();
  const navigate = route.useNavigate();
  const mayAcknowledge = useMay("acknowledge");
  const act = useAct("alerts", "overview");
  const query = useQuery(alertsQuery(every === true));
  const columns: Column<Alert>[] = [
    { id: "severity", header: "How bad", width: "100px", value: (row) => row.severity, cell: (row) => <StateBadge state={TONE[row.severity]} word={row.severity} /> },
    { id: "sentence", header: "What", width: "minmax(220px, 3fr)", cell: (row) => <span title={row.sentence}>{row.sentence}</span> },
    { id: "about", header: "About", width: "minmax(120px, 1fr)", cell: (row) => (row.case ? <Link to="/cases/$case" params={{ case: row.case }}>{row.case}</Link> : row.subject) },
    { id: "raised", header: "Since", width: "90px", value: (row) => row.raised_at, cell: (row) => <Time at={row.raised_at} /> },
    {
      id: "seen", header: "Seen", width: "150px",
      cell: (row) =>
        row.acknowledged_at ? (
          <>{row.acknowledged_by} <Time at={row.acknowledged_at} /></>
        ) : row.closed_at ? (
          <span className="muted">over</span>
        ) : mayAcknowledge ? (
          <button type="button" className="link-button" onClick={() => void act(() => ask(api.POST("/api/v1/acknowledged/{alert}", { params: { path: { alert: row.id } } })), "Others see that you have seen it")}>
            I have seen it
          </button>
        ) : (
          <span className="muted">by nobody yet</span>
        ),
    },
  ];
  return (
    <div className="stack">
      <CheckField label="Those that are over too" checked={every === true} onChange={(checked) => void navigate({ search: (before) => ({ ...before, every: checked || undefined }) })} />
      <Loaded query={query}>
        {(alerts) => <DataTable label="Alerts" inline rows={alerts as Alert[]} columns={columns} rowId={(row) => row.id} empty={<EmptyState title="Nothing to look at" icon="bell">Alerts come when a case waits for somebody, a pilot is gone, a disk fills, a queue grows. A webhook sends them on.</EmptyState>} />}
      </Loaded>
    </div>
  );
}
