/** Where pilots are submitted to. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useAct, useQuestion } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Menu } from "@/components/menu";
import { Facts, Page } from "@/components/page";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { Word } from "@/components/word";
import { SiteDialog } from "./site-dialog";
import "@/styles/resources.css";

type SiteView = Schemas["SiteView"];

const route = getRouteApi("/sites");

const COLUMNS: Column<SiteView>[] = [
  { id: "site", narrow: 1, header: "Site", width: "minmax(120px, 1fr)", value: (row) => row.site.name, cell: (row) => <Link to="/sites" search={{ site: row.site.name }}>{row.site.name}</Link> },
  { id: "kind", narrow: 2, header: "Batch system", width: "110px", value: (row) => row.site.batch?.kind ?? "", cell: (row) => row.site.batch?.kind ?? "local" },
  { id: "state", narrow: 1, header: "State", width: "100px", value: (row) => row.state, cell: (row) => <StateBadge of={row.state} word={row.state} /> },
  { id: "busy", header: "Busy", width: "64px", align: "end", value: (row) => row.busy, cell: (row) => row.busy },
  { id: "idle", header: "Idle", width: "64px", align: "end", value: (row) => row.idle, cell: (row) => row.idle },
  { id: "waiting", header: "In the queue", width: "112px", align: "end", value: (row) => row.inactive, cell: (row) => row.inactive },
  { id: "most", header: "At most", width: "76px", align: "end", value: (row) => row.site.max_pilots ?? 0, cell: (row) => row.site.max_pilots ?? "" },
  { id: "hour", header: "Left this hour", width: "122px", align: "end", value: (row) => row.left_this_hour, cell: (row) => row.left_this_hour },
  { id: "why", narrow: 2, header: "Why as many", width: "minmax(160px, 2fr)", cell: (row) => row.trouble || (row.paused?.why ?? row.reasons[0] ?? "") },
];

function SiteDetails({ view, onClose }: { view: SiteView; onClose: () => void }) {
  const { site } = view;
  const may = useMayAll();
  const act = useAct("sites");
  const [question, askFirst] = useQuestion("sites");
  const [changing, setChanging] = useState(false);
  const path = { name: site.name };
  const remove = (force: boolean) =>
    askFirst({
      title: `Remove ${site.name}`,
      will: force ? "Its pilots are ended now, and their jobs run elsewhere, from the beginning." : "No more pilots are submitted. The site is removed when its last pilot has done its jobs.",
      act: "Remove",
      danger: true,
      done: `${site.name} is being removed`,
      onAct: async () => {
        await ask(api.DELETE("/api/v1/sites/{name}", { params: { path, query: { force } } }));
        onClose();
      },
    });
  const pause = () =>
    askFirst({
      title: `Pause ${site.name}`,
      will: "No more pilots are submitted there until it is resumed. Those that are there go on.",
      act: "Pause",
      done: `${site.name} is paused`,
      onAct: () => ask(api.POST("/api/v1/sites/{name}/pause", { params: { path }, body: { reason: "paused in the web app" } })),
    });
  const acts = [
    ...(may("put_site") ? [{ id: "change", label: "Settings …", run: () => setChanging(true) }] : []),
    ...(may("remove_site")
      ? [
          { id: "remove", label: "Remove …", danger: true, run: () => remove(false) },
          { id: "force", label: "Remove, and end its pilots …", danger: true, run: () => remove(true) },
        ]
      : []),
  ];
  return (
    <DetailsPane
      title={site.name}
      label={`Site ${site.name}`}
      onClose={onClose}
      actions={
        <>
          {view.paused
            ? may("resume_site") && (
                <button type="button" className="button small" onClick={() => void act(() => ask(api.POST("/api/v1/sites/{name}/resume", { params: { path } })), `${site.name} goes on`)}>
                  Resume
                </button>
              )
            : may("pause_site") && (
                <button type="button" className="button small" onClick={pause}>
                  Pause …
                </button>
              )}
          {acts.length > 0 && <Menu label={`More acts on ${site.name}`} className="icon-button" acts={acts} />}
        </>
      }
    >
      {view.trouble && <p className="notice"><Icon name="failures" size={14} /> {view.trouble}</p>}
      {view.warnings.map((each) => <p key={each} className="notice">{each}</p>)}
      <Facts
        facts={[
          ["State", <StateBadge key="state" of={view.state} word={view.state} />],
          ["Paused", view.paused && <span key="paused">{view.paused.why} · {personText(view.paused.by)} <Time at={view.paused.at} /></span>],
          ["Batch system", site.batch?.kind ?? "local"],
          ["Queue", site.batch?.queue],
          ["Pilots", `${view.busy} busy, ${view.idle} idle, ${view.inactive} in the queue`],
          ["How many", `${site.min_pilots ? `at least ${site.min_pilots}, ` : ""}${site.max_pilots ? `at most ${site.max_pilots}` : "any number"}${site.min_idle ? `, ${site.min_idle} of them idle` : ""}`],
          ["Slots of each", String(site.pilots?.slots ?? 1)],
          ["This hour", `${plural(view.left_this_hour, "more submission")} allowed`],
          ["Failures", view.failures ? plural(view.failures, "submission") : ""],
          ["Added", <span key="made">by {personText(view.made_by)} <Time at={view.made_at} /></span>],
        ]}
      />
      <section>
        <h3>Why it has as many pilots</h3>
        <ul className="plain-list">{view.reasons.map((each) => <li key={each}>{each}</li>)}</ul>
        {!view.reasons.length && <p className="muted">No job waits for pilots of this site.</p>}
      </section>
      <section>
        <h3>Pilots that it asked for</h3>
        {view.submissions.length ? (
          <ul className="plain-list">
            {view.submissions.map((each) => (
              <li key={each.name}>
                <StateBadge of={each.state === "working" ? "running" : (each.state ?? "planned")} word={each.state} />{" "}
                {each.pilot ? <Link to="/pilots" search={{ pilot: each.pilot }}>{each.pilot}</Link> : <span className="mono">{each.native || each.name}</span>} <Time at={each.since} />
              </li>
            ))}
          </ul>
        ) : (
          <p className="muted">None at the moment. <Link to="/pilots" search={{ site: site.name }}>Its pilots</Link></p>
        )}
      </section>
      {view.endings.length > 0 && (
        <section>
          <h3>What became of the last ones</h3>
          <ul className="plain-list">
            {view.endings.map((each) => (
              <li key={`${each.name}${each.at}`}><Time at={each.at} /> {each.how}{each.why && <span className="muted"> · {each.why}</span>}</li>
            ))}
          </ul>
        </section>
      )}
      {question}
      {changing && <SiteDialog open site={site as never} onClose={() => setChanging(false)} onMade={() => setChanging(false)} />}
    </DetailsPane>
  );
}

export default function SitesPage() {
  const { site, make } = route.useSearch();
  const navigate = route.useNavigate();
  const may = useMayAll();
  const query = useQuery({ queryKey: ["sites"], queryFn: ({ signal }) => ask(api.GET("/api/v1/sites", { signal })), refetchInterval: 5000 });
  const sites = (query.data ?? []) as SiteView[];
  const found = sites.find((each) => each.site.name === site);
  const button = may("put_site") && (
    <Link from="/sites" to="/sites" search={(before) => ({ ...before, make: true as const })} className="button primary">
      <Icon name="plus" size={14} /> Add a site
    </Link>
  );
  return (
    <Page title="Sites" lead={<>A site is a batch system, or this machine: <Word of="pilots" /> are submitted to it when jobs wait.</>} fill actions={sites.length ? button : undefined}>
      <WithDetails details={found ? <SiteDetails key={found.site.name} view={found} onClose={() => void navigate({ search: {} })} /> : null}>
        <Loaded query={query} lines={6}>
          {() => (
            <DataTable label="Sites" rows={sites} columns={COLUMNS} rowId={(row) => row.site.name} at={site ?? ""} onOpen={(row) => void navigate({ search: { site: row.site.name } })}
              empty={
                <EmptyState title="No site yet" icon="sites" action={button}>
                  A site is a batch system, or this machine, where pilots are started when jobs wait. Pilots that are started by hand need none. <Link to="/pilots">See the pilots</Link>
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </WithDetails>
      {make && may("put_site") && <SiteDialog open onClose={() => void navigate({ search: (before) => ({ ...before, make: undefined }) })} onMade={(name) => void navigate({ search: { site: name } })} />}
    </Page>
  );
}
