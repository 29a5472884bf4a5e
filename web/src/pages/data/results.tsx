import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { useQuestion } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { bytes } from "@/components/format";
import { Icon } from "@/components/icon";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";

type Result = Schemas["ResultView"];

const route = getRouteApi("/data");

const COLUMNS: Column<Result>[] = [
  { id: "job", narrow: 1, header: "Job", width: "minmax(160px, 1.6fr)", value: (row) => row.job, cell: (row) => <Link to="/cases/$case" params={{ case: row.case }} search={{ view: "items", item: row.item }}>{row.job}</Link> },
  { id: "name", header: "Step", width: "minmax(90px, 1fr)", value: (row) => row.name, cell: (row) => row.name },
  { id: "flow", header: "Flow", width: "minmax(90px, 1fr)", value: (row) => row.flow, cell: (row) => row.flow },
  { id: "files", header: "Files", width: "70px", align: "end", value: (row) => row.files, cell: (row) => row.files },
  { id: "bytes", narrow: 2, header: "Size", width: "90px", align: "end", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
  { id: "made", narrow: 2, header: "Made", width: "100px", value: (row) => row.made_at, cell: (row) => <Time at={row.made_at} /> },
  { id: "used", header: "Last used", width: "100px", value: (row) => row.used_at, cell: (row) => <Time at={row.used_at} none="never" /> },
  { id: "reason", narrow: 2, header: "", width: "minmax(100px, 1.2fr)", cell: (row) => <span className="muted" title={row.reason}>{row.reason}</span> },
];

export function Results() {
  const { flow } = route.useSearch();
  const navigate = route.useNavigate();
  const mayDrop = useMay("drop_results");
  const [question, askFirst] = useQuestion("results");
  const query = useQuery({ queryKey: ["results", { flow }], queryFn: ({ signal }) => ask(api.GET("/api/v1/results", { params: { query: { flow, limit: 500 } }, signal })) });
  const drop = () =>
    askFirst({ title: flow ? `Forget the results of ${flow}` : "Forget all results", will: `Jobs ${flow ? `of ${flow} ` : ""}run again where they would have been found. Cases and their files stay.`, act: "Forget", danger: true, done: "Forgotten", onAct: () => ask(api.DELETE("/api/v1/results", { params: { query: flow ? { flow } : { every: true } } })) });
  return (
    <div className="stack fill-stack">
      <div className="filter-bar">
        <label className="search-field"><Icon name="search" size={14} /><input type="search" aria-label="Of the flow" placeholder="Of the flow" value={flow ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, flow: event.target.value || undefined }), replace: true })} /></label>
        <span className="spread" />
        {mayDrop && (query.data?.length ?? 0) > 0 && <button type="button" className="button" onClick={drop}>Forget …</button>}
      </div>
      <Loaded query={query}>
        {(rows) => <DataTable label="Earlier results" rows={rows as Result[]} columns={COLUMNS} rowId={(row) => row.job} empty={<EmptyState title={flow ? "No result of this flow" : "No result yet"} icon="again">Jobs that declare what they read and write leave results; the next case with the same inputs uses them instead of running.</EmptyState>} />}
      </Loaded>
      {question}
    </div>
  );
}
