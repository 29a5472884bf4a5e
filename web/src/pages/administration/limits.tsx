import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { plural } from "@/components/format";
import { TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

type Limit = Schemas["LimitView"];

function LimitDialog({ limit, onClose }: { limit: Limit | null; onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState(limit?.name ?? "");
  const [count, setCount] = useState(limit?.count === null || !limit ? "" : String(limit.count));
  return (
    <ConfirmDialog
      title={limit ? `Limit ${limit.name}` : "New limit"}
      act="Set"
      open
      onClose={onClose}
      disabled={!name.trim() || !/^\d+$/.test(count.trim())}
      will={
        <div className="stack">
          <p>Jobs that name it use no more than this together, on all pilots. It takes effect at once, and stops no job that runs.</p>
          {!limit && <TextField label="Name" required value={name} onChange={setName} placeholder="licences" hint="Jobs name it: limits: {licences: 1}" />}
          <TextField label="Together at most" required type="number" value={count} onChange={setCount} />
        </div>
      }
      onAct={async () => {
        await ask(api.PUT("/api/v1/limits/{name}", { params: { path: { name: name.trim() } }, body: { count: Number(count) } as never }));
        toast("good", `${name} is ${count}`);
        await refresh("limits");
      }}
    />
  );
}

export function Limits() {
  const may = useMayAll();
  const [changing, setChanging] = useState<Limit | "new" | null>(null);
  const [question, askFirst] = useQuestion("limits");
  const query = useQuery({ queryKey: ["limits"], queryFn: ({ signal }) => ask(api.GET("/api/v1/limits", { signal })), refetchInterval: 5000 });
  const remove = (limit: Limit) =>
    askFirst({ title: `Remove ${limit.name}`, will: "Jobs that name it wait until it is set again. Jobs that run go on.", act: "Remove", danger: true, done: `${limit.name} is removed`, onAct: () => ask(api.DELETE("/api/v1/limits/{name}", { params: { path: { name: limit.name } } })) });
  const columns: Column<Limit>[] = [
    { id: "name", narrow: 1, header: "Limit", width: "minmax(120px, 1fr)", value: (row) => row.name, cell: (row) => row.name },
    { id: "used", narrow: 1, narrowCell: (row) => (row.count === null ? "not set: jobs wait" : `${row.used} of ${row.count} in use`), header: "In use", width: "130px", value: (row) => row.used, cell: (row) => (row.count === null ? "not set: jobs wait" : `${row.used} of ${row.count}`) },
    { id: "waiting", narrow: 2, narrowCell: (row) => (row.waiting ? plural(row.waiting, "job waits", "jobs wait") : "no job waits"), header: "Jobs that wait", width: "110px", align: "end", value: (row) => row.waiting, cell: (row) => row.waiting },
    { id: "jobs", header: "Held by", width: "minmax(140px, 2fr)", cell: (row) => row.jobs.slice(0, 3).map((job) => <Link key={job.job} to="/cases/$case" params={{ case: job.job.slice(0, job.job.lastIndexOf("/")) }}>{job.job} </Link>) },
    { id: "set", header: "Set", width: "150px", value: (row) => row.set_at, cell: (row) => row.set_at > 0 && <><Time at={row.set_at} /> by {personText(row.set_by)}</> },
    { id: "acts", narrow: 2, header: "", width: "160px", cell: (row) => <span className="row">{may("set_limit") && <button type="button" className="link-button" onClick={() => setChanging(row)}>Change …</button>}{may("remove_limit") && <button type="button" className="link-button" onClick={() => remove(row)}>Remove …</button>}</span> },
  ];
  const button = may("set_limit") && <button type="button" className="button primary" onClick={() => setChanging("new")}><Icon name="plus" size={14} /> New limit</button>;
  return (
    <div className="stack">
      <div className="row"><p className="muted">What jobs may use together: licences, connections to a database, places in a queue.</p><span className="spread" />{(query.data?.length ?? 0) > 0 && button}</div>
      <Loaded query={query}>
        {(limits) => <DataTable label="Limits" inline rows={limits} columns={columns} rowId={(row) => `${row.project}/${row.name}`} empty={<EmptyState title="No limit yet" icon="filter" action={button}>Set one, and name it in the jobs that share it.</EmptyState>} />}
      </Loaded>
      {query.data && query.data.some((limit) => limit.waiting > 0) && <p className="muted">{plural(query.data.reduce((sum, limit) => sum + limit.waiting, 0), "job waits", "jobs wait")} for a limit.</p>}
      {changing && <LimitDialog limit={changing === "new" ? null : changing} onClose={() => setChanging(null)} />}
      {question}
    </div>
  );
}
