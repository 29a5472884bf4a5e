/** Pick a flow to run, or give a new one. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { caseFlowFileQuery, flowsQuery, type FlowView } from "@/api/queries";
import { useMay } from "@/api/session";
import { DataTable, type Column } from "@/components/data-table";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { FlowEditor } from "../flow/flow-editor";
import { matches } from "./matches";
import "@/styles/resources.css";

const route = getRouteApi("/run");

const COLUMNS: Column<FlowView>[] = [
  { id: "flow", narrow: 1, header: "Flow", width: "minmax(140px, 1.2fr)", value: (row) => row.name, cell: (row) => <Link to="/run/$flow" params={{ flow: row.name }}>{row.name}</Link> },
  { id: "description", narrow: 2, header: "What it does", width: "minmax(160px, 3fr)", cell: (row) => <span className="muted">{row.description}</span> },
  { id: "by", header: "Deployed by", width: "110px", value: (row) => row.deployed_by, cell: (row) => personText(row.deployed_by) },
  { id: "at", narrow: 2, header: "When", width: "100px", value: (row) => row.deployed_at, cell: (row) => <Time at={row.deployed_at} /> },
  { id: "version", header: "Version", width: "72px", align: "end", value: (row) => row.version, cell: (row) => row.version },
  { id: "project", header: "Project", width: "100px", value: (row) => row.project, cell: (row) => row.project },
  { id: "look", narrow: 1, header: "", width: "64px", cell: (row) => <Link to="/flows/$name" params={{ name: row.name }} aria-label={`Look at ${row.name}`}>Look</Link> },
];

/** The file that a case was started with, to be edited and deployed. */
function FlowOfCase({ id, onDeployed }: { id: string; onDeployed: (name: string) => void }) {
  const query = useQuery(caseFlowFileQuery(id));
  return (
    <Page title={`The flow of ${id}`} crumbs={<Link to="/cases/$case" params={{ case: id }} search={{ view: "file" }}>{id}</Link>} lead="It begins with the file that the case was started with.">
      <Loaded query={query} lines={8}>{(file) => <FlowEditor name={file.flow} before={file} onDeployed={onDeployed} />}</Loaded>
    </Page>
  );
}

export default function RunPage() {
  const { find = "", write, of_case: ofCase } = route.useSearch();
  const navigate = route.useNavigate();
  const mayDeploy = useMay("deploy");
  const query = useQuery(flowsQuery);
  const shown = ((query.data ?? []) as FlowView[]).filter((view) => matches(view, find));
  if (write && ofCase) return <FlowOfCase id={ofCase} onDeployed={(name) => void navigate({ to: "/flows/$name", params: { name } })} />;
  if (write) {
    return (
      <Page title="New flow" crumbs={<Link to="/run">New run</Link>} lead="Paste a flow file, or write one. Problems are marked where they are.">
        <FlowEditor name="" onDeployed={(name) => void navigate({ to: "/run/$flow", params: { flow: name } })} />
      </Page>
    );
  }
  const give = mayDeploy && (
    <Link to="/run" search={{ write: true }} className="button">
      <Icon name="plus" size={14} /> New flow
    </Link>
  );
  return (
    <Page
      title="New run"
      lead={<>Pick a flow; then say its inputs, and start. <Link to="/flows">Flows</Link> has their versions, and is where they are edited and removed.</>}
      fill
      actions={
        <>
          <label className="search-field">
            <Icon name="search" size={14} />
            <input type="search" aria-label="Find a flow" placeholder="Find a flow" value={find} onChange={(event) => void navigate({ search: { find: event.target.value || undefined }, replace: true })} />
          </label>
          {give}
        </>
      }
    >
      <Loaded query={query} lines={6}>
        {(views) =>
          views.length ? (
            <DataTable
              label="Flows"
              rows={shown}
              columns={COLUMNS}
              rowId={(row) => row.name}
              onOpen={(row) => void navigate({ to: "/run/$flow", params: { flow: row.name } })}
              empty={<EmptyState title="No flow matches" icon="search">Nothing in a name or a description is “{find}”. Clear the field to see all.</EmptyState>}
            />
          ) : (
            <EmptyState title="No flow yet" icon="flow" action={give}>
              A flow says what is to be done. Give one here, or with <code>mendflow flows deploy FLOW.yaml</code>.
            </EmptyState>
          )
        }
      </Loaded>
    </Page>
  );
}
