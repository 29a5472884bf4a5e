import { useQuery } from "@tanstack/react-query";
import { api, ask, type Schemas } from "@/api/client";
import { useMe } from "@/api/session";
import { DataTable, type Column } from "@/components/data-table";
import { duration, number, plural } from "@/components/format";
import { Facts, Panel } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";

type Server = Schemas["ServerView"];

const COLUMNS: Column<Server>[] = [
  { id: "id", narrow: 1, header: "Server", width: "minmax(130px, 1.2fr)", value: (row) => row.id, cell: (row) => <>{row.id}{row.own && <span className="muted"> (this one)</span>}</> },
  { id: "state", narrow: 1, header: "State", width: "90px", value: (row) => row.state, cell: (row) => <StateBadge of={row.state} word={row.state} /> },
  { id: "version", narrow: 2, header: "Version", width: "110px", value: (row) => row.version, cell: (row) => row.version },
  { id: "url", header: "Address", width: "minmax(140px, 1.4fr)", cell: (row) => <span className="mono">{row.url}</span> },
  { id: "cases", narrow: 2, narrowCell: (row) => plural(row.cases, "case"), header: "Cases", width: "70px", align: "end", value: (row) => row.cases, cell: (row) => row.cases },
  { id: "running", narrow: 2, narrowCell: (row) => `${number(row.running)} of its jobs run`, header: "Running", width: "76px", align: "end", value: (row) => row.running, cell: (row) => row.running },
  { id: "waiting", header: "Waiting", width: "76px", align: "end", value: (row) => row.waiting, cell: (row) => row.waiting },
  { id: "pilots", header: "Pilots", width: "70px", align: "end", value: (row) => row.pilots, cell: (row) => row.pilots },
  { id: "started", narrow: 2, header: "Started", width: "100px", value: (row) => row.started_at, cell: (row) => <Time at={row.started_at} /> },
];

export function Versions() {
  const me = useMe();
  const health = useQuery({ queryKey: ["health"], queryFn: ({ signal }) => ask(api.GET("/api/v1/health", { signal })), refetchInterval: 10_000 });
  const servers = useQuery({ queryKey: ["servers"], queryFn: ({ signal }) => ask(api.GET("/api/v1/servers", { signal })), refetchInterval: 5000 });
  return (
    <div className="stack">
      <Panel title="This server">
        <Loaded query={health}>
          {(said) => (
            <Facts
              facts={[
                ["Health", <StateBadge key="health" of={said.status === "ok" ? "ok" : "failed"} word={said.status === "ok" ? "ok" : said.message} />],
                ["Version", said.version],
                ["Domain", me?.domain],
                ["Store", said.store],
                ["Up for", duration(said.uptime_ms)],
                ["API", <a key="api" href="/api/v1/docs">described here</a>],
              ]}
            />
          )}
        </Loaded>
      </Panel>
      <Loaded query={servers}>{(rows) => <DataTable label="Servers" inline rows={rows} columns={COLUMNS} rowId={(row) => row.id} />}</Loaded>
    </div>
  );
}
