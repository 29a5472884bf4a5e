/** The pilots: what runs jobs, where, how full, and when it was last heard of. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { api, ask, requestJson, type Schemas } from "@/api/client";
import { pilotsQuery, whyQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import { useQuestion } from "@/components/acts";
import { CopyButton } from "@/components/copy-button";
import { DataTable, type Column } from "@/components/data-table";
import { Dialog } from "@/components/dialog";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { bytes, duration, number, plural } from "@/components/format";
import { Facts, Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { STATES } from "./search";
import "@/styles/resources.css";

type Pilot = Schemas["PilotView"];

const route = getRouteApi("/pilots");

function Slots({ pilot }: { pilot: Pilot }) {
  const { slots } = pilot.capacity;
  const busy = pilot.busy_slots;
  if (slots > 24) return <span>{busy} of {slots}</span>;
  return (
    <span className="slots" role="img" aria-label={`${busy} of ${slots} slots are busy`} title={`${busy} of ${slots} slots are busy`}>
      {Array.from({ length: slots }, (_, at) => (
        <span key={at} className={at < busy ? "busy" : ""} />
      ))}
    </span>
  );
}

/** How long ago it was heard; a state that is not active says what that means. */
function heard(pilot: Pilot): string {
  return pilot.seen_ms_ago < 1000 ? "just now" : `${duration(pilot.seen_ms_ago - (pilot.seen_ms_ago % 1000))} ago`;
}

function stateWord(pilot: Pilot): string {
  if (pilot.drained) return pilot.running.length ? "draining" : "drained";
  return pilot.state === "active" ? (pilot.running.length ? "busy" : "idle") : pilot.state;
}

const COLUMNS: Column<Pilot>[] = [
  { id: "pilot", narrow: 1, header: "Pilot", width: "minmax(140px, 1.4fr)", value: (row) => row.id, cell: (row) => <Link from="/pilots" to="/pilots" search={(before) => ({ ...before, pilot: row.id })}>{row.id}</Link> },
  { id: "state", narrow: 1, header: "State", width: "110px", value: stateWord, cell: (row) => <StateBadge of={row.drained ? "draining" : row.state} word={stateWord(row)} /> },
  { id: "slots", narrow: 2, header: "Slots", width: "minmax(80px, 1fr)", value: (row) => row.capacity.slots, cell: (row) => <Slots pilot={row} /> },
  { id: "jobs", header: "Jobs", width: "60px", align: "end", value: (row) => row.running.length, cell: (row) => row.running.length },
  { id: "host", header: "Host", width: "minmax(90px, 1fr)", value: (row) => row.host, cell: (row) => row.host },
  { id: "site", narrow: 2, header: "Site", width: "minmax(70px, 0.8fr)", value: (row) => row.site, cell: (row) => (row.site ? <Link to="/sites" search={{ site: row.site }}>{row.site}</Link> : <span className="muted">by hand</span>) },
  { id: "cpus", header: "CPUs", width: "60px", align: "end", value: (row) => row.capacity.cpus, cell: (row) => row.capacity.cpus },
  { id: "gpus", header: "GPUs", width: "60px", align: "end", value: (row) => row.capacity.gpus ?? 0, cell: (row) => row.capacity.gpus ?? 0 },
  { id: "memory", header: "Memory", width: "84px", align: "end", value: (row) => row.capacity.memory_bytes, cell: (row) => bytes(row.capacity.memory_bytes) },
  { id: "cache", header: "Cache", width: "84px", align: "end", value: (row) => row.cache_bytes, cell: (row) => bytes(row.cache_bytes) },
  { id: "heard", narrow: 2, header: "Heard", width: "100px", value: (row) => row.seen_ms_ago, cell: heard },
];

/** Whether any waiting job asks for a GPU: then it is told of every pilot how many it has, also if none has any. */
const gpusWantedQuery = {
  queryKey: ["jobs", "gpus-wanted"],
  queryFn: ({ signal }: { signal: AbortSignal }) => ask(api.GET("/api/v1/jobs/count", { params: { query: { where: "state == 'available' && resources.gpus > 0" } }, signal })),
  retry: false,
};

/** How to start one: the web app cannot, for it runs where its jobs are to run. */
function AddPilot({ open, onClose }: { open: boolean; onClose: () => void }) {
  const mayMakeToken = useMay("create_token");
  const command = `mendflow pilot --server ${location.origin}`;
  return (
    <Dialog title="Add a pilot" open={open} onClose={onClose} wide>
      <p>A pilot is started on the machine whose CPUs, memory and GPUs it is to offer:</p>
      <p className="row">
        <code>{command}</code> <CopyButton text={command} label="Copy the command" />
      </p>
      <p>
        It offers all that the machine has; <code>--cpus</code>, <code>--memory</code> and <code>--gpus</code> say less. Where the server asks for tokens, <code>--token-file FILE</code> names that of a pilot
        {mayMakeToken && <>; <Link to="/administration" search={{ view: "tokens" }}>make one</Link></>}.
      </p>
      <p>
        Or <Link to="/sites" search={{ make: true }}>add a site</Link>, such as a batch system: it gets pilots when jobs wait.
      </p>
    </Dialog>
  );
}

function PilotDetails({ pilot, onClose }: { pilot: Pilot; onClose: () => void }) {
  const mayDrain = useMay(pilot.drained ? "resume_pilot" : "drain_pilot");
  const why = useQuery(whyQuery(pilot.id));
  const [question, ask] = useQuestion("pilots");
  const address = `/api/v1/pilots/${encodeURIComponent(pilot.id)}/drain`;
  const drain = () =>
    ask({
      title: `Drain ${pilot.id}`,
      will: `It gets no more jobs. The ${plural(pilot.running.length, "job")} that it has now run to their end. That holds until it is undone, also for a pilot of the same name that comes back.`,
      act: "Drain",
      done: `${pilot.id} takes no more jobs`,
      onAct: () => requestJson(address, { method: "POST", body: { reason: "drained in the web app" } }),
    });
  const undo = () =>
    ask({ title: `Use ${pilot.id} again`, will: "It gets jobs again.", act: "Use it again", done: `${pilot.id} takes jobs again`, onAct: () => requestJson(address, { method: "DELETE" }) });
  return (
    <DetailsPane
      title={pilot.id}
      label={`Pilot ${pilot.id}`}
      onClose={onClose}
      actions={
        mayDrain &&
        pilot.state !== "gone" && (
          <button type="button" className="button small" onClick={pilot.drained ? undo : drain}>
            {pilot.drained ? "Use again …" : "Drain …"}
          </button>
        )
      }
    >
      {why.data && <p>{why.data.sentence}</p>}
      <Facts
        facts={[
          ["State", <StateBadge key="state" of={pilot.drained ? "draining" : pilot.state} word={stateWord(pilot)} />],
          ["Drained by", pilot.drained],
          ["Slots", `${pilot.busy_slots} of ${pilot.capacity.slots} busy`],
          ["Host", pilot.host],
          ["Site", pilot.site],
          ["Machine", [pilot.capacity.system, pilot.capacity.machine, pilot.capacity.runtime].filter(Boolean).join(", ")],
          ["CPUs", String(pilot.capacity.cpus)],
          ["GPUs", pilot.capacity.gpus ? String(pilot.capacity.gpus) : ""],
          ["Memory", bytes(pilot.capacity.memory_bytes)],
          ["Disk", bytes(pilot.capacity.disk_bytes)],
          ["Cache", `${plural(pilot.cache_files, "file")}, ${bytes(pilot.cache_bytes)}`],
          ["Heard", heard(pilot)],
          ["Lease", pilot.lease_ms_left > 0 ? `${duration(pilot.lease_ms_left)} left` : "over"],
          ["Server", pilot.front],
          ["Submission", pilot.submission],
          ["Projects", pilot.projects.length ? pilot.projects.join(", ") : "all"],
        ]}
      />
      <section>
        <h3>Jobs that it has</h3>
        {pilot.running.length > pilot.busy_slots && <p className="muted">{plural(pilot.busy_slots, "runs", "run")}; the others were fetched ahead, and begin when a slot is free.</p>}
        {pilot.running.length ? (
          <ul className="plain-list">
            {pilot.running.map((job) => (
              <li key={job}>
                <Link to="/cases/$case" params={{ case: job.slice(0, job.lastIndexOf("/")) }} search={{ view: "items" }}>{job}</Link>
              </li>
            ))}
          </ul>
        ) : (
          <p className="muted">None at the moment.</p>
        )}
      </section>
      {question}
    </DetailsPane>
  );
}

export default function PilotsPage() {
  const { pilot, site, state, add } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(pilotsQuery);
  const all = (query.data ?? []) as Pilot[];
  const shown = all.filter((each) => (!site || each.site === site) && (!state || each.state === state));
  const mayAdd = useMay("start"); // who only looks on is offered nothing
  const gpusWanted = useQuery(gpusWantedQuery).data?.counts[""] ?? 0;
  const columns = gpusWanted || all.some((each) => each.capacity.gpus) ? COLUMNS : COLUMNS.filter((each) => each.id !== "gpus");
  const up = all.filter((each) => each.state === "active");
  const slots = up.reduce((sum, each) => sum + each.capacity.slots, 0);
  const busy = up.reduce((sum, each) => sum + each.busy_slots, 0);
  const found = all.find((each) => each.id === pilot);
  const sites = [...new Set(all.map((each) => each.site).filter(Boolean))].sort();
  return (
    <Page
      title="Pilots"
      fill
      lead={query.data && `${number(up.length)} active · ${number(busy)} of ${number(slots)} slots busy`}
      actions={
        <div className="filter-bar">
          {mayAdd && (
            <button type="button" className="button" onClick={() => void navigate({ search: (before) => ({ ...before, add: true }) })}>
              Add a pilot …
            </button>
          )}
          <select aria-label="State" value={state ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, state: STATES.find((each) => each === event.target.value) }) })}>
            <option value="">every state</option>
            {STATES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
          {sites.length > 0 && (
            <select aria-label="Site" value={site ?? ""} onChange={(event) => void navigate({ search: (before) => ({ ...before, site: event.target.value || undefined }) })}>
              <option value="">every site</option>
              {sites.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          )}
        </div>
      }
    >
      <AddPilot open={add === true} onClose={() => void navigate({ search: (before) => ({ ...before, add: undefined }) })} />
      <WithDetails details={found ? <PilotDetails pilot={found} onClose={() => void navigate({ search: (before) => ({ ...before, pilot: undefined }) })} /> : null}>
        <Loaded query={query} lines={6}>
          {() => (
            <DataTable
              label="Pilots"
              rows={shown}
              columns={columns}
              rowId={(row) => row.id}
              at={pilot ?? ""}
              onOpen={(row) => void navigate({ search: (before) => ({ ...before, pilot: row.id }) })}
              empty={
                all.length ? (
                  <EmptyState title="No pilot matches" icon="filter">Choose every state and every site to see all {all.length}.</EmptyState>
                ) : (
                  <EmptyState title="No pilot yet" icon="pilots" action={<Link to="/sites" search={{ make: true }} className="button">Add a site</Link>}>
                    Pilots run the jobs. Start one on any machine with <code>mendflow pilot --server {location.origin}</code>, or add a site, which starts them when jobs wait.
                  </EmptyState>
                )
              }
            />
          )}
        </Loaded>
      </WithDetails>
    </Page>
  );
}
