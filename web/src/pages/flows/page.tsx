/** The flows that are deployed: each with its version, and the ways to look at it, run it and edit it. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { flowsQuery, type FlowView } from "@/api/queries";
import { useMay } from "@/api/session";
import { DataTable, type Column } from "@/components/data-table";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { matches } from "../run/matches";
import "@/styles/resources.css";

const route = getRouteApi("/flows");

const COLUMNS: Column<FlowView>[] = [
  { id: "flow", narrow: 1, header: "Flow", width: "minmax(140px, 1.2fr)", value: (row) => row.name, cell: (row) => <Link to="/flows/$name" params={{ name: row.name }}>{row.name}</Link> },
  { id: "description", narrow: 2, header: "What it does", width: "minmax(160px, 3fr)", cell: (row) => <span className="muted">{row.description}</span> },
  { id: "version", header: "Version", width: "72px", align: "end", value: (row) => row.version, cell: (row) => row.version },
  { id: "by", header: "Deployed by", width: "110px", value: (row) => row.deployed_by, cell: (row) => personText(row.deployed_by) },
  { id: "at", narrow: 2, header: "When", width: "100px", value: (row) => row.deployed_at, cell: (row) => <Time at={row.deployed_at} /> },
  { id: "project", header: "Project", width: "100px", value: (row) => row.project, cell: (row) => row.project },
  { id: "cases", header: "", width: "64px", cell: (row) => <Link to="/cases" search={{ flow: row.name }} aria-label={`Cases of ${row.name}`}>Cases</Link> },
];

const RUN: Column<FlowView> = { id: "run", narrow: 1, header: "", width: "52px", cell: (row) => <Link to="/run/$flow" params={{ flow: row.name }} aria-label={`Run ${row.name}`}>Run</Link> };
const EDIT: Column<FlowView> = { id: "edit", header: "", width: "52px", cell: (row) => <Link to="/flows/$name" params={{ name: row.name }} search={{ view: "edit" }} aria-label={`Edit ${row.name}`}>Edit</Link> };

export default function FlowsPage() {
  const { find = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const mayDeploy = useMay("deploy");
  const mayStart = useMay("start");
  const query = useQuery(flowsQuery);
  const shown = ((query.data ?? []) as FlowView[]).filter((view) => matches(view, find));
  const give = mayDeploy && (
    <Link to="/run" search={{ write: true }} className="button">
      <Icon name="plus" size={14} /> New flow
    </Link>
  );
  return (
    <Page
      title="Flows"
      lead="What is deployed here, and can be run."
      fill
      actions={
        <>
          <label className="search-field">
            <Icon name="search" size={14} />
            <input type="search" aria-label="Find a flow" placeholder="Find a flow" value={find} onChange={(event) => void navigate({ search: { find: event.target.value || undefined }, replace: true })} />
          </label>
          {query.data?.length ? give : undefined}
        </>
      }
    >
      <Loaded query={query} lines={6}>
        {(views) =>
          views.length ? (
            <DataTable
              label="Flows"
              rows={shown}
              columns={[...COLUMNS, ...(mayDeploy ? [EDIT] : []), ...(mayStart ? [RUN] : [])]}
              rowId={(row) => row.name}
              onOpen={(row) => void navigate({ to: "/flows/$name", params: { name: row.name } })}
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
