import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useAct, useQuestion } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { bytes, number, plural } from "@/components/format";
import { Facts } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";

type DataSet = Schemas["DataSetView"];

const route = getRouteApi("/data");
const TONE = { open: "running", closed: "waiting", over: "done" } as const;

const COLUMNS: Column<DataSet>[] = [
  { id: "name", narrow: 1, header: "Data set", width: "minmax(130px, 1.5fr)", value: (row) => row.name, cell: (row) => <Link to="/data" search={{ view: "sets", name: row.name }}>{row.name}</Link> },
  { id: "state", narrow: 1, header: "State", width: "90px", value: (row) => row.state, cell: (row) => <StateBadge of={TONE[row.state]} word={row.state} /> },
  { id: "files", narrow: 2, narrowCell: (row) => plural(row.files, "file"), header: "Files", width: "80px", align: "end", value: (row) => row.files, cell: (row) => number(row.files) },
  { id: "bytes", narrow: 2, header: "Size", width: "90px", align: "end", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
  { id: "starts", narrow: 2, header: "Starts", width: "minmax(120px, 1.5fr)", cell: (row) => row.gatherings.map((each) => each.flow).join(", ") || <span className="muted">nothing</span> },
  { id: "waits", header: "Waits for", width: "minmax(120px, 1.5fr)", cell: (row) => row.waits_for.join("; ") },
  { id: "made", narrow: 2, header: "Made", width: "100px", value: (row) => row.made_at, cell: (row) => <Time at={row.made_at} /> },
];

function SetDetails({ set, onClose }: { set: DataSet; onClose: () => void }) {
  const may = useMayAll();
  const act = useAct("data");
  const [question, askFirst] = useQuestion("data");
  const batches = useQuery({ queryKey: ["data", "batches", set.name], queryFn: ({ signal }) => ask(api.GET("/api/v1/data/sets/{name}/batches", { params: { path: { name: set.name }, query: { limit: 50 } }, signal })), refetchInterval: 5000 });
  const close = () =>
    askFirst({ title: `Close ${set.name}`, will: "Nothing more comes: what has gathered starts its last cases now, and the set is over when they are.", act: "Close it", done: `${set.name} is closed`, onAct: () => ask(api.POST("/api/v1/data/sets/{name}/close", { params: { path: { name: set.name } } })) });
  return (
    <DetailsPane title={set.name} label={`Data set ${set.name}`} onClose={onClose} actions={set.state === "open" && may("close_set") && <button type="button" className="button small" onClick={close}>Nothing more comes …</button>}>
      <Facts facts={[["State", <StateBadge key="state" of={TONE[set.state]} word={set.state} />], ["Files", <Link key="files" to="/data" search={{ set: set.name }}>{number(set.files)}</Link>], ["Size", bytes(set.bytes)], ["Late", set.late ? number(set.late) : ""], ["After", set.after.join(", ")], ["Waits for", set.waits_for.join("; ")]]} />
      {set.gatherings.map((each) => (
        <section key={each.name}>
          <h3>{each.name}: <Link to="/flows/$name" params={{ name: each.flow }}>{each.flow}</Link></h3>
          <p>{each.rule}</p>
          <p className="muted">{each.waiting_files === 0 ? "No file waits" : `${plural(each.waiting_files, "file waits", "files wait")} (${bytes(each.waiting_bytes)})`}{each.due_at > 0 && <>, due <Time at={each.due_at} /></>}</p>
        </section>
      ))}
      <section>
        <h3>Batches</h3>
        <Loaded query={batches}>
          {(rows) => (
            <ul className="plain-list">
              {rows.map((each) => (
                <li key={`${each.gathering}/${each.number}`} className="row wrap">
                  <StateBadge of={each.status} /> {each.case ? <Link to="/cases/$case" params={{ case: each.case }}>{each.case}</Link> : `batch ${each.number}`} <span className="muted">{plural(each.files, "file")}{each.problem && ` · ${each.problem}`}</span>
                  {(each.status === "failed" || each.status === "cancelled") && may("retry_batch") && (
                    <button type="button" className="link-button" onClick={() => void act(() => ask(api.POST("/api/v1/data/sets/{name}/batches/{gathering}/{number}/retry", { params: { path: { name: set.name, gathering: each.gathering, number: each.number } } })), "Another case takes it up")}>Another case</button>
                  )}
                </li>
              ))}
              {!rows.length && <li className="muted">None yet.</li>}
            </ul>
          )}
        </Loaded>
      </section>
      {question}
    </DetailsPane>
  );
}

export function DataSets() {
  const { name } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery({ queryKey: ["data", "sets"], queryFn: ({ signal }) => ask(api.GET("/api/v1/data/sets", { params: { query: { all: true } }, signal })), refetchInterval: 10_000 });
  const found = query.data?.find((each) => each.name === name);
  return (
    <WithDetails details={found ? <SetDetails key={found.name} set={found} onClose={() => void navigate({ search: { view: "sets" } })} /> : null}>
      <Loaded query={query}>
        {(sets) => <DataTable label="Data sets" rows={sets} columns={COLUMNS} rowId={(row) => row.name} at={name ?? ""} onOpen={(row) => void navigate({ search: { view: "sets", name: row.name } })} empty={<EmptyState title="No data set yet" icon="data">Files that come into a set start cases. A flow brings one by <code>on: files:</code></EmptyState>} />}
      </Loaded>
    </WithDetails>
  );
}
