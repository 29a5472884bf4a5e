/** Other installations that this one works with. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { bytes, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Facts, Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { Word } from "@/components/word";
import { AcceptDialog, InviteDialog } from "./dialogs";
import "@/styles/resources.css";

type Domain = Schemas["DomainView"];

const route = getRouteApi("/domains");

const TONE: Record<Domain["state"], string> = { connected: "running", draining: "draining", invited: "pending", refused: "rejected", silent: "silent" };

const COLUMNS: Column<Domain>[] = [
  { id: "name", narrow: 1, header: "Domain", width: "minmax(120px, 1fr)", value: (row) => row.name, cell: (row) => <Link to="/domains" search={{ domain: row.name }}>{row.name}</Link> },
  { id: "state", narrow: 1, header: "State", width: "110px", value: (row) => row.state, cell: (row) => <StateBadge of={TONE[row.state]} word={row.state} /> },
  { id: "slots", narrow: 2, narrowCell: (row) => row.report && `${row.report.slots_free} of ${row.report.slots} slots free`, header: "Free slots", width: "90px", align: "end", value: (row) => row.report?.slots_free ?? null, cell: (row) => (row.report ? `${row.report.slots_free} of ${row.report.slots}` : "") },
  { id: "sent", header: "Sent there", width: "90px", align: "end", value: (row) => row.sent ?? 0, cell: (row) => row.sent ?? 0 },
  { id: "held", header: "Held here", width: "90px", align: "end", value: (row) => row.held ?? 0, cell: (row) => row.held ?? 0 },
  { id: "heard", narrow: 2, header: "Heard", width: "100px", value: (row) => row.heard_at ?? 0, cell: (row) => <Time at={row.heard_at} none="never" /> },
  { id: "url", header: "Address", width: "minmax(140px, 1.5fr)", cell: (row) => <span className="mono">{row.url}</span> },
  { id: "reason", header: "", width: "minmax(100px, 1fr)", cell: (row) => row.reason ?? "" },
];

function DomainDetails({ domain, onClose }: { domain: Domain; onClose: () => void }) {
  const may = useMayAll();
  const [question, askFirst] = useQuestion("domains");
  const disconnect = (force: boolean) =>
    askFirst({
      title: `Disconnect ${domain.name}`,
      will: force ? "The connection ends now. What is under way between the two is lost, and its steps fail." : "Nothing new is sent. It ends when nothing is under way any more.",
      act: "Disconnect",
      danger: true,
      done: `${domain.name} is being disconnected`,
      onAct: async () => {
        await ask(api.DELETE("/api/v1/domains/{name}", { params: { path: { name: domain.name }, query: { force } } }));
        onClose();
      },
    });
  return (
    <DetailsPane
      title={domain.name}
      label={`Domain ${domain.name}`}
      onClose={onClose}
      actions={
        may("disconnect_domain") && (
          <>
            <button type="button" className="button small" onClick={() => disconnect(false)}>{domain.state === "invited" ? "Withdraw …" : "Disconnect …"}</button>
            {domain.state !== "invited" && <button type="button" className="button small danger" onClick={() => disconnect(true)}>At once …</button>}
          </>
        )
      }
    >
      {domain.reason && <p className="notice">{domain.reason}</p>}
      <Facts
        facts={[
          ["State", <StateBadge key="state" of={TONE[domain.state]} word={domain.state} />],
          ["Address", <span key="url" className="mono">{domain.url}</span>],
          ["Connected", domain.connected_at ? <Time key="at" at={domain.connected_at} /> : ""],
          ["Heard", domain.heard_at ? <Time key="heard" at={domain.heard_at} /> : ""],
          ["Takes", domain.latency_ms ? `${domain.latency_ms} ms` : ""],
          ["Version", domain.report?.version],
          ["Runs", domain.report ? `${domain.report.running ?? 0} jobs, ${domain.report.waiting ?? 0} wait` : ""],
          ["Costs", domain.report?.charge ? `${domain.report.charge} an hour of a CPU` : ""],
        ]}
      />
      <section>
        <h3>What it may do here</h3>
        <Facts
          facts={[
            ["Flows", domain.rights?.flows?.join(", ") || "none"],
            ["Flows of its own", domain.rights?.own_flows ? "yes" : "no"],
            ["Sites", domain.rights?.sites?.join(", ")],
            ["At once", domain.rights?.work_max ? plural(domain.rights.work_max, "piece") : ""],
            ["Data", domain.rights?.bytes_max ? bytes(domain.rights.bytes_max) : ""],
          ]}
        />
      </section>
      {(domain.report?.flows?.length ?? 0) > 0 && (
        <section>
          <h3>Flows that it runs for us</h3>
          <div className="chips">{domain.report?.flows?.map((flow) => <span key={flow} className="chip">{flow}</span>)}</div>
        </section>
      )}
      {(domain.cases?.length ?? 0) > 0 && (
        <section>
          <h3>Cases under way</h3>
          <ul className="plain-list">{domain.cases?.map((each) => <li key={each}><Link to="/cases/$case" params={{ case: each }}>{each}</Link></li>)}</ul>
        </section>
      )}
      {question}
    </DetailsPane>
  );
}

export default function DomainsPage() {
  const { domain, make } = route.useSearch();
  const navigate = route.useNavigate();
  const may = useMayAll();
  const query = useQuery({ queryKey: ["domains"], queryFn: ({ signal }) => ask(api.GET("/api/v1/domains", { signal })), refetchInterval: 5000 });
  const domains = (query.data?.domains ?? []) as Domain[];
  const found = domains.find((each) => each.name === domain);
  const close = () => void navigate({ search: (before) => ({ domain: before.domain }) });
  const buttons = (
    <>
      {may("connect_domain") && <Link from="/domains" to="/domains" search={(before) => ({ ...before, make: "accept" as const })} className="button">Accept an invitation</Link>}
      {may("invite_domain") && <Link from="/domains" to="/domains" search={(before) => ({ ...before, make: "invite" as const })} className="button primary"><Icon name="plus" size={14} /> Invite</Link>}
    </>
  );
  return (
    <Page title="Domains" fill lead={query.data && <>This <Word of="domain" /> is {query.data.name}{query.data.charge ? `; an hour of a CPU costs ${query.data.charge}` : ""}.</>} actions={domains.length ? buttons : undefined}>
      <WithDetails details={found ? <DomainDetails key={found.name} domain={found} onClose={() => void navigate({ search: {} })} /> : null}>
        <Loaded query={query} lines={6}>
          {() => (
            <DataTable label="Domains" rows={domains} columns={COLUMNS} rowId={(row) => row.name} at={domain ?? ""} onOpen={(row) => void navigate({ search: { domain: row.name } })}
              empty={<EmptyState title="Not connected with another domain" icon="domains" action={<span className="row">{buttons}</span>}>Connected, two installations run parts of each other’s flows, as far as each allows it.</EmptyState>}
            />
          )}
        </Loaded>
      </WithDetails>
      {make === "invite" && may("invite_domain") && <InviteDialog onClose={close} />}
      {make === "accept" && may("connect_domain") && <AcceptDialog onClose={close} />}
    </Page>
  );
}
