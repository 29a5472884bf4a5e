import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

type Secret = Schemas["SecretView"];

function SecretDialog({ secret, onClose }: { secret: Secret | null; onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState(secret?.name ?? "");
  const [value, setValue] = useState("");
  return (
    <ConfirmDialog
      title={secret ? `Another value of ${secret.name}` : "Set a secret"}
      act="Set"
      open
      onClose={onClose}
      disabled={!name.trim() || !value}
      will={
        <div className="stack">
          <p>Jobs get it by its name. No page and no call shows the value again.</p>
          {!secret && <TextField label="Name" required value={name} onChange={setName} />}
          <TextField label="Value" required type="password" value={value} onChange={setValue} />
        </div>
      }
      onAct={async () => {
        await ask(api.PUT("/api/v1/secrets/{name}", { params: { path: { name: name.trim() } }, body: { value } }));
        setValue("");
        toast("good", `${name} is set`);
        await refresh("secrets");
      }}
    />
  );
}

export function Secrets() {
  const may = useMayAll();
  const [changing, setChanging] = useState<Secret | "new" | null>(null);
  const [question, askFirst] = useQuestion("secrets");
  const query = useQuery({ queryKey: ["secrets"], queryFn: ({ signal }) => ask(api.GET("/api/v1/secrets", { signal })) });
  const remove = (secret: Secret) =>
    askFirst({ title: `Remove ${secret.name}`, will: secret.used_by.length ? `Jobs of ${secret.used_by.join(", ")} that use it fail from then on.` : "No flow uses it.", act: "Remove", danger: true, done: `${secret.name} is removed`, onAct: () => ask(api.DELETE("/api/v1/secrets/{name}", { params: { path: { name: secret.name } } })) });
  const columns: Column<Secret>[] = [
    { id: "name", narrow: 1, header: "Secret", width: "minmax(120px, 1fr)", value: (row) => row.name, cell: (row) => <span className="mono">{row.name}</span> },
    { id: "source", narrow: 1, header: "From", width: "100px", cell: (row) => row.source },
    { id: "used", narrow: 2, header: "Used by", width: "minmax(140px, 2fr)", cell: (row) => (row.used_by.length ? row.used_by.map((flow) => <Link key={flow} to="/flows/$name" params={{ name: flow }}>{flow} </Link>) : <span className="muted">no flow</span>) },
    { id: "set", header: "Set", width: "160px", value: (row) => row.set_at, cell: (row) => row.problem || (row.set_at > 0 && <><Time at={row.set_at} /> by {personText(row.set_by)}</>) },
    { id: "acts", narrow: 2, header: "", width: "180px", cell: (row) => <span className="row">{may("set_secret") && <button type="button" className="link-button" onClick={() => setChanging(row)}>New value …</button>}{may("remove_secret") && <button type="button" className="link-button" onClick={() => remove(row)}>Remove …</button>}</span> },
  ];
  const button = may("set_secret") && <button type="button" className="button primary" onClick={() => setChanging("new")}><Icon name="plus" size={14} /> Set a secret</button>;
  return (
    <div className="stack">
      <div className="row"><p className="muted">Passwords and keys that jobs use by name. A value is never shown.</p><span className="spread" />{(query.data?.length ?? 0) > 0 && button}</div>
      <Loaded query={query}>
        {(secrets) => <DataTable label="Secrets" inline rows={secrets} columns={columns} rowId={(row) => `${row.project}/${row.name}`} empty={<EmptyState title="No secret yet" icon="administration" action={button}>Set one, and jobs name it under secrets:</EmptyState>} />}
      </Loaded>
      {changing && <SecretDialog secret={changing === "new" ? null : changing} onClose={() => setChanging(null)} />}
      {question}
    </div>
  );
}
