import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { askPage, api, requestJson, type Schemas } from "@/api/client";
import { useMay } from "@/api/session";
import { useQuestion } from "@/components/acts";
import { CopyButton } from "@/components/copy-button";
import { DataTable, type Column } from "@/components/data-table";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { bytes } from "@/components/format";
import { Icon } from "@/components/icon";
import { Facts } from "@/components/page";
import { EmptyState, ErrorState, Loading } from "@/components/states-of-page";
import { Time } from "@/components/time";

type File = Schemas["LogicalFile"];

const route = getRouteApi("/data");

const COLUMNS: Column<File>[] = [
  { id: "name", narrow: 1, header: "Name", width: "minmax(200px, 3fr)", cell: (row) => <span className="mono">{row.name}</span> },
  { id: "bytes", narrow: 2, header: "Size", width: "90px", align: "end", cell: (row) => bytes(row.bytes) },
  { id: "set", narrow: 2, header: "Data set", width: "minmax(90px, 1fr)", cell: (row) => row.data_set ?? "" },
  { id: "places", narrow: 2, header: "Lies on", width: "minmax(110px, 1fr)", cell: (row) => [...new Set((row.replicas ?? []).map((each) => each.element))].join(", ") || <span className="muted">nowhere</span> },
  { id: "added", narrow: 2, header: "Added", width: "100px", cell: (row) => <Time at={row.added_at} /> },
];

function FileDetails({ file, onClose }: { file: File; onClose: () => void }) {
  const mayRemove = useMay("remove_data");
  const [question, askFirst] = useQuestion("data");
  const remove = () =>
    askFirst({ title: `Forget ${file.name}`, will: "Its name is forgotten. What lies on storage elements stays there.", act: "Forget", danger: true, done: "Forgotten", onAct: async () => { await requestJson(`/api/v1/data/files/${encodeURI(file.name)}`, { method: "DELETE" }); onClose(); } });
  return (
    <DetailsPane title={file.name} label={`File ${file.name}`} onClose={onClose} actions={mayRemove && <button type="button" className="button small" onClick={remove}>Forget …</button>}>
      <Facts facts={[["Size", bytes(file.bytes)], ["Data set", file.data_set], ["Made by", file.made_by], ["Added", <Time key="at" at={file.added_at} />], ["SHA-256", <span key="sha" className="row"><code className="clip">{file.sha256}</code><CopyButton text={file.sha256} label="Copy the SHA-256" /></span>], ...Object.entries(file.meta ?? {})]} />
      <section>
        <h3>Where it lies</h3>
        <ul className="plain-list">{(file.replicas ?? []).map((each) => <li key={`${each.element}${each.path}`}><span className="chip">{each.element}</span> <span className="mono">{each.path}</span></li>)}</ul>
      </section>
      {question}
    </DetailsPane>
  );
}

export function Files() {
  const { prefix, set, name } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useInfiniteQuery({
    queryKey: ["data", "files", { prefix, set }],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) => askPage(api.GET("/api/v1/data/files", { params: { query: { prefix, set, after: pageParam, limit: 200 } }, signal })),
    getNextPageParam: (page) => page.next || (page.data.length === 200 ? page.data.at(-1)?.name : undefined),
  });
  const rows = (query.data?.pages.flatMap((page) => page.data) ?? []) as File[];
  const one = useQuery({ queryKey: ["data", "file", name], queryFn: ({ signal }) => requestJson<File>(`/api/v1/data/files/${encodeURI(name ?? "")}`, { signal }), enabled: Boolean(name) && query.isSuccess && !rows.some((each) => each.name === name) });
  const found = rows.find((each) => each.name === name) ?? one.data;
  const narrowed = Boolean(prefix || set);
  return (
    <WithDetails details={found && name ? <FileDetails file={found} onClose={() => void navigate({ search: (before) => ({ ...before, name: undefined }) })} /> : null}>
      <div className="stack fill-stack">
        <div className="filter-bar">
          <label className="search-field"><Icon name="search" size={14} /><input type="search" aria-label="Beginning of the name" placeholder="Begins with" value={prefix ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, prefix: event.target.value || undefined }), replace: true })} /></label>
          {set && <button type="button" className="chip" onClick={() => void navigate({ search: (before) => ({ ...before, set: undefined }) })}>of the set {set} <Icon name="close" size={12} /></button>}
        </div>
        {query.isError && <ErrorState error={query.error} again={() => void query.refetch()} />}
        {query.isPending && <Loading />}
        {query.data && (
          <DataTable label="Files" rows={rows} columns={COLUMNS} rowId={(row) => row.name} at={name ?? ""} onOpen={(row) => void navigate({ search: (before) => ({ ...before, name: row.name }) })} onEnd={() => query.hasNextPage && !query.isFetching && void query.fetchNextPage()}
            empty={narrowed ? <EmptyState title="No file matches" icon="search">Names are found by how they begin. Clear the field to see all.</EmptyState> : <EmptyState title="No logical file yet" icon="file" action={<Link to="/cases" className="button">See the cases and their files</Link>}>A logical file has a name of its own, and lies on one or several storage elements. Jobs make them with publish:, and <code>mendflow data add</code> takes in what is there. The files that a case was given and made are not here: they stand on its page, under Inputs and outputs, and beside each of its items.</EmptyState>}
          />
        )}
      </div>
    </WithDetails>
  );
}
