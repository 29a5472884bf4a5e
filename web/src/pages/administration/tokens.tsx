import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll, useMe } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { CopyButton } from "@/components/copy-button";
import { DataTable, type Column } from "@/components/data-table";
import { Dialog } from "@/components/dialog";
import { ChoicesField, SelectField, TextField, TimeField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { Facts, Panel } from "@/components/page";
import { readTime } from "@/components/quantities";
import { EmptyState, ErrorState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { mayWords } from "./token-words";

type Token = Schemas["TokenView"];
type ProjectRole = "admin" | "author" | "operator" | "viewer";

const ROLES = [
  ["admin", "admin: everything"],
  ["user", "user: reads, deploys, starts, mends"],
  ["reader", "reader: only looks"],
  ["pilot", "pilot"],
  ["engine", "engine"],
  ["metrics", "metrics"],
] as const;

/** What lets jobs run; a server that runs jobs as itself takes no such token of anybody else. */
const WITH_JOBS = ["admin", "user", "engine"];
const PROJECT_ROLES = [["viewer", "viewer"], ["operator", "operator"], ["author", "author"], ["admin", "admin"]] as const;

function NoJobs({ why }: { why: string }) {
  return (
    <div className="notice token-notice">
      <p>
        <Icon name="help" size={14} /> This server runs jobs as itself, for one owner. So it takes tokens of those who look, of pilots and of collectors, and none that let others start flows.
      </p>
      <details>
        <summary>How to let others start flows</summary>
        <p>{why}</p>
      </details>
    </div>
  );
}

function NewToken({ onClose }: { onClose: () => void }) {
  const refresh = useRefresh();
  const noJobs = useMe()?.no_jobs_by_tokens ?? "";
  const [name, setName] = useState("");
  const [roles, setRoles] = useState<string[]>([]);
  const [more, setMore] = useState("");
  const [project, setProject] = useState("");
  const [projectRole, setProjectRole] = useState<ProjectRole>(noJobs ? "viewer" : "operator");
  const [expires, setExpires] = useState("90 d");
  const [made, setMade] = useState<Schemas["CreatedToken"] | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const taskRoles = more.split(/[\s,]+/).filter(Boolean);
  const may = mayWords(roles, taskRoles, project.trim() && `${projectRole} of the project ${project.trim()}`);
  const make = async () => {
    setRefused(null);
    try {
      const body = {
        name: name.trim(),
        roles: [...roles, ...taskRoles],
        projects: project.trim() ? { [project.trim()]: projectRole } : {},
        ...(expires.trim() ? { expires_ms: readTime(expires) ?? 0 } : {}),
      };
      setMade(await ask(api.POST("/api/v1/tokens", { body })));
      await refresh("tokens");
    } catch (error) {
      setRefused(error);
    }
  };
  const wrong = !name.trim() || !may || (expires.trim() !== "" && readTime(expires) === null);
  return (
    <Dialog
      title={made ? `The token of ${made.view.name}` : "Make a token"}
      open
      onClose={onClose}
      footer={
        made ? (
          <button type="button" className="button primary" onClick={onClose}>
            I have it
          </button>
        ) : (
          <>
            <button type="button" className="button" onClick={onClose}>
              Not now
            </button>
            <button type="button" className="button primary" disabled={wrong} onClick={() => void make()}>
              Make it
            </button>
          </>
        )
      }
    >
      {made ? (
        <>
          <p>It is shown only now: the server keeps no copy. Give it by <code>MENDFLOW_TOKEN</code>, or sign in with it.</p>
          <div className="secret-once">
            <code data-testid="token">{made.token}</code>
            <CopyButton text={made.token} label="Copy the token" />
          </div>
        </>
      ) : (
        <>
          <TextField label="Name" required value={name} onChange={setName} hint="Of the person or the program that gets it." />
          {noJobs && <NoJobs why={noJobs} />}
          <ChoicesField label="Roles" choices={ROLES.filter(([role]) => !noJobs || !WITH_JOBS.includes(role))} chosen={roles as never} onChange={setRoles} />
          <TextField label="Roles of user tasks" value={more} onChange={setMore} placeholder="approver, editor" />
          <div className="two-fields">
            <TextField label="Project" value={project} onChange={setProject} hint="Empty: the project default." />
            <SelectField label="Role there" value={projectRole} onChange={setProjectRole} choices={noJobs ? PROJECT_ROLES.slice(0, 1) : PROJECT_ROLES} />
          </div>
          <TimeField label="Holds for" value={expires} onChange={setExpires} hint="Empty: until it is revoked." />
          <p className="notice" role="status">{may ? `${name.trim() || "Who has it"} ${may}.` : "Choose what the token is for: a role, a role of user tasks, or a project."}</p>
          {refused !== null && <ErrorState error={refused} compact />}
        </>
      )}
    </Dialog>
  );
}

function projectsOf(token: Token): string {
  return Object.entries(token.projects).map(([name, role]) => `${name}: ${role}`).join(", ");
}

export function Tokens() {
  const may = useMayAll();
  const me = useMe();
  const [making, setMaking] = useState(false);
  const [question, askFirst] = useQuestion("tokens");
  const query = useQuery({ queryKey: ["tokens"], queryFn: ({ signal }) => ask(api.GET("/api/v1/tokens", { signal })) });
  const revoke = (token: Token) =>
    askFirst({
      title: `Revoke the token of ${token.name}`,
      will: "Whoever has it is refused from now on, on every server within a second; browsers that signed in with it are signed out. This cannot be undone.",
      act: "Revoke",
      danger: true,
      done: `The token of ${token.name} is revoked`,
      onAct: () => ask(api.DELETE("/api/v1/tokens/{token}", { params: { path: { token: token.id } } })),
    });
  const columns: Column<Token>[] = [
    { id: "name", narrow: 1, header: "Name", width: "minmax(100px, 1fr)", value: (row) => row.name, cell: (row) => row.name },
    { id: "roles", narrow: 1, header: "Roles", width: "minmax(110px, 1.2fr)", cell: (row) => row.roles.join(", ") },
    { id: "projects", header: "Projects", width: "minmax(100px, 1.2fr)", cell: (row) => projectsOf(row) || <span className="muted">default</span> },
    { id: "made", narrow: 2, header: "Made", width: "150px", value: (row) => row.made_at, cell: (row) => <><Time at={row.made_at} /> by {personText(row.made_by)}</> },
    { id: "expires", header: "Holds until", width: "110px", value: (row) => row.expires_at || null, cell: (row) => (row.expired ? "expired" : <Time at={row.expires_at} none="it is revoked" />) },
    { id: "used", header: "Last used", width: "110px", value: (row) => row.used_at, cell: (row) => <Time at={row.used_at} none="never" /> },
    { id: "acts", narrow: 2, header: "", width: "90px", cell: (row) => may("revoke_token") && <button type="button" className="link-button" onClick={() => revoke(row)} aria-label={`Revoke ${row.name}`}>Revoke …</button> },
  ];
  const button = may("create_token") && (
    <button type="button" className="button primary" onClick={() => setMaking(true)}>
      <Icon name="plus" size={14} /> Make a token
    </button>
  );
  const tokens = query.data ?? [];
  const projects = [...new Set([...tokens.flatMap((token) => Object.keys(token.projects)), ...Object.keys(me?.projects ?? {})])].sort();
  return (
    <div className="stack">
      <div className="row">
        <p className="muted">Whoever asks over a network brings a token. The server keeps only its digest.</p>
        <span className="spread" />
        {tokens.length > 0 && button}
      </div>
      <Loaded query={query}>
        {() => <DataTable label="Tokens" inline rows={tokens} columns={columns} rowId={(row) => row.id} empty={<EmptyState title="No token in the store yet" icon="administration" action={button}>Those in the server’s file of tokens work too, and are not listed here. Make one for each person and program.</EmptyState>} />}
      </Loaded>
      <Panel title="Projects">
        {projects.length ? (
          <Facts facts={projects.map((project) => [project, tokens.filter((token) => Object.hasOwn(token.projects, project)).map((token) => `${token.name} (${token.projects[project]})`).join(", ") || "nobody by token"])} />
        ) : (
          <p className="muted">No token names a project: everything belongs to the project default. Give a token a project, and it sees that one alone.</p>
        )}
      </Panel>
      {making && <NewToken onClose={() => setMaking(false)} />}
      {question}
    </div>
  );
}
