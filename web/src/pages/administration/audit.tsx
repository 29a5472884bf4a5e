import { personText } from "@/components/person-text";
import { keepPreviousData, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { api, ask, askPage, type Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { DataTable, type Column } from "@/components/data-table";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, ErrorState, Loading } from "@/components/states-of-page";
import { Time } from "@/components/time";

type Entry = Schemas["AuditEntry"];

const route = getRouteApi("/administration");
const OUTCOMES = ["done", "refused", "failed", "unanswered"];
/** Each file that somebody sends is an entry, known by its digest: they would hide all others. */
const STORING = "store_file";

const COLUMNS: Column<Entry>[] = [
  { id: "at", narrow: 2, header: "When", width: "100px", cell: (row) => <Time at={row.at} /> },
  { id: "who", narrow: 2, header: "Who", width: "minmax(90px, 1fr)", cell: (row) => personText(row.who) },
  { id: "operation", narrow: 1, header: "What", width: "minmax(120px, 1.2fr)", cell: (row) => <span className="mono">{row.operation}</span> },
  { id: "object", narrow: 1, header: "To what", width: "minmax(120px, 2fr)", cell: (row) => [row.object, row.made !== row.object && row.made].filter(Boolean).join(" → ") },
  { id: "outcome", narrow: 2, header: "Outcome", width: "120px", cell: (row) => <StateBadge of={row.outcome === "refused" ? "rejected" : (row.outcome ?? "done")} word={row.code || row.outcome || "done"} /> },
  { id: "source", header: "From", width: "minmax(90px, 1fr)", cell: (row) => row.source },
  { id: "server", header: "Server", width: "minmax(90px, 1fr)", cell: (row) => row.server },
];

function Chains() {
  const query = useQuery({ queryKey: ["audit", "chains"], queryFn: ({ signal }) => ask(api.GET("/api/v1/audit/chains", { signal })), enabled: useMay("verify_audit"), staleTime: 30_000 });
  if (!query.data) return null;
  const broken = query.data.filter((chain) => chain.problem);
  const entries = query.data.reduce((sum, chain) => sum + chain.entries, 0);
  const unrecorded = query.data.reduce((sum, chain) => sum + (chain.unrecorded ?? 0), 0);
  const last = Math.max(...query.data.map((chain) => chain.unrecorded_at ?? 0));
  if (unrecorded && !broken.length) {
    return (
      <p className="notice">
        <Icon name="failures" size={14} /> <span>Not all that was done is in the record: {plural(unrecorded, "time")} a server was used here that writes none, such as that of <code>mendflow run</code>, the last one <Time at={last} />. The {plural(entries, "entry", "entries")} that are there were neither cut nor changed.</span>
      </p>
    );
  }
  return broken.length ? (
    <p className="notice"><Icon name="failures" size={14} /> The record is not whole: {broken.map((chain) => `${chain.server}: ${chain.problem}`).join("; ")}</p>
  ) : (
    <p className="muted"><Icon name="check" size={12} /> The record is whole: {plural(entries, "entry", "entries")}, each sealed by the next.</p>
  );
}

export function Audit() {
  const { who, operation, object, outcome, files } = route.useSearch();
  const navigate = route.useNavigate();
  const hidden = !files && !operation;
  const wish = { who, operation, object, outcome, without: hidden ? STORING : undefined };
  const query = useInfiniteQuery({
    queryKey: ["audit", "entries", wish],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => askPage(api.GET("/api/v1/audit", { params: { query: { ...wish, limit: 100, after: pageParam } }, signal })),
    getNextPageParam: (page) => page.next || undefined,
    placeholderData: keepPreviousData,
  });
  const rows = query.data?.pages.flatMap((page) => page.data) ?? [];
  const set = (name: string, value: string) => void navigate({ search: (before) => ({ ...before, [name]: value || undefined }), replace: true });
  const narrowed = Boolean(who || operation || object || outcome);
  return (
    <div className="stack">
      <div className="filter-bar" role="search" aria-label="Who did what">
        <input type="search" aria-label="Who" placeholder="Who" value={who ?? ""} onChange={(event) => set("who", event.target.value)} />
        <input type="search" aria-label="Operation" placeholder="What, as create_token" value={operation ?? ""} onChange={(event) => set("operation", event.target.value)} />
        <input type="search" aria-label="Object" placeholder="To what, as a case" title="This, and everything in it: of a case its tasks, items, jobs and called cases" value={object ?? ""} onChange={(event) => set("object", event.target.value)} />
        <select aria-label="Outcome" value={outcome ?? ""} onChange={(event) => set("outcome", event.target.value)}>
          <option value="">every outcome</option>
          {OUTCOMES.map((each) => <option key={each}>{each}</option>)}
        </select>
        <span className="spread" />
        <a className="button" href="/api/v1/audit/export" download="audit.jsonl"><Icon name="download" size={14} /> Export</a>
      </div>
      <Chains />
      {!operation && (
        <p className="muted">
          {hidden ? "That files were stored (store_file) is hidden. " : "That files were stored (store_file) is shown. "}
          <button type="button" className="link-button" onClick={() => void navigate({ search: (before) => ({ ...before, files: before.files ? undefined : true }), replace: true })}>
            {hidden ? "Show it" : "Hide it"}
          </button>
        </p>
      )}
      {query.isError && <ErrorState error={query.error} again={() => void query.refetch()} />}
      {query.isPending && <Loading />}
      {query.data && (
        <DataTable label="Who did what" inline rows={rows} columns={COLUMNS} rowId={(row) => `${row.server}/${row.number}`} onEnd={() => query.hasNextPage && !query.isFetching && void query.fetchNextPage()}
          empty={<EmptyState title={narrowed ? "No entry matches" : "Nothing was changed yet"} icon="search">{narrowed ? "Names are compared whole; what belongs to a case is found by the case’s id. Clear a field to see more." : "Each change of anything is recorded here: who, what, when, and from where."}</EmptyState>}
        />
      )}
    </div>
  );
}
