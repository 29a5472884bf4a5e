import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { bytes, duration, number, percent } from "@/components/format";
import { CheckField, SizeField, TextField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { readSize, writeSize } from "@/components/quantities";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

type Project = Schemas["ProjectView"];
type Quotas = Schemas["Quotas"];
type QuotaName = keyof Quotas;

const QUOTAS: readonly { name: QuotaName; word: string; size?: true; hint: string }[] = [
  { name: "cases", word: "Cases", hint: "that have not ended; beyond it no case is started" },
  { name: "running_jobs", word: "Running jobs", hint: "beyond it jobs wait" },
  { name: "waiting_jobs", word: "Waiting jobs", hint: "in the queue; further ones come as others leave" },
  { name: "cpus", word: "CPUs", hint: "that running jobs ask for together" },
  { name: "memory_bytes", word: "Memory", size: true, hint: "that running jobs ask for together" },
  { name: "stored_bytes", word: "Stored files", size: true, hint: "beyond it no case and no job is started" },
  { name: "requests_per_s", word: "Requests a second", hint: "of its members, to all servers" },
];

const shown = (value: number, size?: true) => (size ? bytes(value) : number(value));

/** What is used of each quota that is set, those first that are nearly used up. */
function Bounds({ project, none = "none" }: { project: Project; none?: string }) {
  const used = project.used as Partial<Record<QuotaName, number | null>>;
  const set = QUOTAS.flatMap((quota) => {
    const bound = project.settings.quotas[quota.name];
    return bound === null || bound === undefined ? [] : [{ ...quota, bound, used: used[quota.name] ?? null }];
  }).sort((one, other) => (other.used ?? 0) / (other.bound || 1) - (one.used ?? 0) / (one.bound || 1));
  if (!set.length) return <span className="muted">{none}</span>;
  const text = set.map((each) => `${each.word.toLowerCase()} ${each.used === null ? "at most" : `${shown(each.used, each.size)} of`} ${shown(each.bound, each.size)}`).join(", ");
  return <span title={text}>{text}</span>;
}

function draft(quota: (typeof QUOTAS)[number], project: Project | null): string {
  const value = project?.settings.quotas[quota.name];
  return value === null || value === undefined ? "" : quota.size ? writeSize(value) : String(value);
}

function read(quota: (typeof QUOTAS)[number], text: string): number | null | undefined {
  if (!text.trim()) return null;
  const value = quota.size ? readSize(text) : Number(text);
  return value === null || !Number.isFinite(value) || value < 0 ? undefined : value;
}

function ProjectDialog({ project, onClose }: { project: Project | null; onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState(project?.name ?? "");
  const [weight, setWeight] = useState(String(project?.settings.weight ?? 1));
  const [shareUsers, setShareUsers] = useState(project?.settings.share_users ?? false);
  const [drafts, setDrafts] = useState<Record<string, string>>(() => Object.fromEntries(QUOTAS.map((quota) => [quota.name, draft(quota, project)])));
  const values = QUOTAS.map((quota) => [quota.name, read(quota, drafts[quota.name] ?? "")] as const);
  const wrong = values.some(([, value]) => value === undefined) || !(Number(weight) > 0) || !name.trim();
  return (
    <ConfirmDialog
      title={project ? `Project ${project.name}` : "Bound a project"}
      act="Set"
      open
      onClose={onClose}
      disabled={wrong}
      will={
        <div className="stack">
          <p>It takes effect at once, and stops nothing that runs. An empty field sets no limit.</p>
          {!project && <TextField label="Project" required value={name} onChange={setName} />}
          <TextField label="Weight" required value={weight} onChange={setWeight} problem={Number(weight) > 0 ? null : "Write a number above 0"} hint="Of two projects whose jobs wait, one of twice the weight gets twice as much." />
          <CheckField label="Its users share in the same way among themselves" checked={shareUsers} onChange={setShareUsers} />
          <div className="two-fields">
            {QUOTAS.map((quota) => {
              const props = { label: quota.word, hint: quota.hint, value: drafts[quota.name] ?? "", onChange: (text: string) => setDrafts((before) => ({ ...before, [quota.name]: text })) };
              return quota.size ? <SizeField key={quota.name} {...props} placeholder="no bound" /> : <TextField key={quota.name} {...props} placeholder="no bound" problem={read(quota, props.value) === undefined ? "Write a number" : null} />;
            })}
          </div>
        </div>
      }
      onAct={async () => {
        const quotas = Object.fromEntries(values.filter(([, value]) => value !== null)) as Quotas;
        const body = { weight: Number(weight), share_users: shareUsers, user_weights: project?.settings.user_weights ?? {}, quotas };
        await ask(api.PUT("/api/v1/projects/{name}", { params: { path: { name: name.trim() } }, body }));
        toast("good", `${name.trim()} is set`);
        await refresh("projects");
      }}
    />
  );
}

export function Projects() {
  const may = useMayAll();
  const [changing, setChanging] = useState<Project | "new" | null>(null);
  const [question, askFirst] = useQuestion("projects");
  const query = useQuery({ queryKey: ["projects"], queryFn: ({ signal }) => ask(api.GET("/api/v1/projects", { signal })), refetchInterval: 10_000 });
  const remove = (project: Project) =>
    askFirst({ title: `Take away what is set for ${project.name}`, will: "It has the weight 1 and no quotas then. Its cases, flows and members stay as they are.", act: "Take away", danger: true, done: `Nothing is set for ${project.name}`, onAct: () => ask(api.DELETE("/api/v1/projects/{name}", { params: { path: { name: project.name } } })) });
  const columns: Column<Project>[] = [
    { id: "name", narrow: 1, header: "Project", width: "minmax(110px, 0.8fr)", value: (row) => row.name, cell: (row) => row.name },
    { id: "weight", narrow: 1, narrowCell: (row) => `weight ${number(row.settings.weight)}`, header: "Weight", width: "72px", align: "end", value: (row) => row.settings.weight, cell: (row) => number(row.settings.weight) },
    { id: "share", header: "Share", width: "72px", align: "end", value: (row) => row.share, cell: (row) => (row.share === null ? "" : percent(row.share, 1)) },
    { id: "had", narrow: 1, narrowCell: (row) => row.used_share !== null && `has had ${percent(row.used_share, 1)}`, header: "Has had", width: "80px", align: "end", value: (row) => row.used_share, cell: (row) => (row.used_share === null ? "" : percent(row.used_share, 1)) },
    { id: "cpu", header: "CPU time", width: "96px", align: "end", value: (row) => row.used.cpu_s, cell: (row) => duration(row.used.cpu_s * 1000) },
    { id: "cpus", header: "CPUs now", width: "84px", align: "end", value: (row) => row.used.cpus, cell: (row) => number(row.used.cpus) },
    { id: "quotas", narrow: 2, narrowCell: (row) => <Bounds project={row} none="no quota" />, header: "Quotas, and what is used", width: "minmax(200px, 3fr)", cell: (row) => <Bounds project={row} /> },
    { id: "set", header: "Set", width: "150px", value: (row) => row.set_at, cell: (row) => row.set_at > 0 && <><Time at={row.set_at} /> by {personText(row.set_by)}</> },
    { id: "acts", narrow: 2, header: "", width: "180px", cell: (row) => may("set_project") && <span className="row"><button type="button" className="link-button" onClick={() => setChanging(row)}>Change …</button>{row.set_at > 0 && <button type="button" className="link-button" onClick={() => remove(row)}>Take away …</button>}</span> },
  ];
  const button = may("set_project") && <button type="button" className="button primary" onClick={() => setChanging("new")}><Icon name="plus" size={14} /> Bound a project</button>;
  return (
    <div className="stack">
      <div className="row"><p className="muted">Projects share the pilots by their weights, and have at most their quotas.</p><span className="spread" />{(query.data?.length ?? 0) > 0 && button}</div>
      <Loaded query={query}>
        {(projects) => <DataTable label="Projects" inline rows={projects} columns={columns} rowId={(row) => row.name} empty={<EmptyState title="No project yet" icon="administration" action={button}>Everything belongs to the project default, without bounds.</EmptyState>} />}
      </Loaded>
      {changing && <ProjectDialog project={changing === "new" ? null : changing} onClose={() => setChanging(null)} />}
      {question}
    </div>
  );
}
