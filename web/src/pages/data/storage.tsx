import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { CheckField, TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

type Element = Schemas["StorageElement"];
type Watch = Schemas["WatchView"];

function NewElement({ onClose }: { onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [readOnly, setReadOnly] = useState(false);
  return (
    <ConfirmDialog
      title="Add a storage element"
      act="Add"
      open
      onClose={onClose}
      disabled={!name.trim() || !url.trim()}
      will={
        <div className="stack">
          <TextField label="Name" required value={name} onChange={setName} placeholder="disk" />
          <TextField label="Address" required mono value={url} onChange={setUrl} placeholder="file:///shared/data" hint="file://, https://, s3:// and what else pilots can read." />
          <CheckField label="Only read from it" checked={readOnly} onChange={setReadOnly} />
        </div>
      }
      onAct={async () => {
        await ask(api.POST("/api/v1/data/storage", { params: { query: {} }, body: { name: name.trim(), url: url.trim(), read_only: readOnly } as never }));
        toast("good", `${name} is added`);
        await refresh("data");
      }}
    />
  );
}

const WATCHES: Column<Watch>[] = [
  { id: "name", narrow: 1, header: "Watch", width: "minmax(110px, 1fr)", cell: (row) => row.watch.name },
  { id: "element", narrow: 2, header: "Of", width: "minmax(130px, 1.4fr)", cell: (row) => <span className="mono">{row.watch.element} {row.watch.prefix} {row.watch.match}</span> },
  { id: "set", narrow: 1, header: "Into the set", width: "minmax(100px, 1fr)", cell: (row) => row.watch.data_set },
  { id: "known", header: "Known", width: "70px", align: "end", cell: (row) => row.known },
  { id: "looked", narrow: 2, header: "Looked", width: "100px", cell: (row) => <Time at={row.looked_at} none="not yet" /> },
  { id: "problem", header: "", width: "minmax(100px, 1fr)", cell: (row) => row.problem },
];

export function Storage() {
  const may = useMayAll();
  const [adding, setAdding] = useState(false);
  const [question, askFirst] = useQuestion("data");
  const elements = useQuery({ queryKey: ["data", "storage"], queryFn: ({ signal }) => ask(api.GET("/api/v1/data/storage", { signal })) });
  const watches = useQuery({ queryKey: ["data", "watches"], queryFn: ({ signal }) => ask(api.GET("/api/v1/data/watches", { signal })), enabled: may("watches") });
  const columns: Column<Element>[] = [
    { id: "name", narrow: 1, header: "Storage element", width: "minmax(110px, 1fr)", value: (row) => row.name, cell: (row) => row.name },
    { id: "url", narrow: 2, header: "Address", width: "minmax(180px, 2fr)", cell: (row) => <span className="mono">{row.url}</span> },
    { id: "sites", header: "Near", width: "minmax(90px, 1fr)", cell: (row) => row.sites?.join(", ") || <span className="muted">all sites</span> },
    { id: "mode", narrow: 1, header: "", width: "90px", cell: (row) => (row.read_only ? "only read" : "") },
    { id: "acts", narrow: 2, header: "", width: "90px", cell: (row) => may("remove_element") && <button type="button" className="link-button" onClick={() => askFirst({ title: `Remove ${row.name}`, will: "It is forgotten; what lies there stays. Refused while files are known to lie there.", act: "Remove", danger: true, done: `${row.name} is removed`, onAct: () => ask(api.DELETE("/api/v1/data/storage/{name}", { params: { path: { name: row.name } } })) })}>Remove …</button> },
  ];
  const button = may("put_element") && <button type="button" className="button primary" onClick={() => setAdding(true)}><Icon name="plus" size={14} /> Add</button>;
  return (
    <div className="stack">
      <Panel title="Storage elements" className="flush" actions={(elements.data?.length ?? 0) > 0 && button}>
        <Loaded query={elements}>
          {(rows) => <DataTable label="Storage elements" inline rows={rows as Element[]} columns={columns} rowId={(row) => row.name} empty={<EmptyState title="No storage element yet" icon="data" action={button}>A storage element is a place where logical files lie: a folder, a web server, a bucket.</EmptyState>} />}
        </Loaded>
      </Panel>
      {(watches.data?.length ?? 0) > 0 && <Panel title="Watched for files" className="flush"><DataTable label="Watches" inline rows={(watches.data ?? []) as Watch[]} columns={WATCHES} rowId={(row) => row.watch.name} /></Panel>}
      {adding && <NewElement onClose={() => setAdding(false)} />}
      {question}
    </div>
  );
}
