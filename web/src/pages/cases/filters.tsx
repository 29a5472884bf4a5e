import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { caseCountsQuery, flowsQuery } from "@/api/queries";
import { Dialog } from "@/components/dialog";
import { Field } from "@/components/field";
import { number } from "@/components/format";
import { Icon } from "@/components/icon";
import { Menu } from "@/components/menu";
import { StateIcon } from "@/components/state-badge";
import { WhereField } from "@/components/where-field";
import { CASE_NAMES, CASE_PLACES } from "@/components/where-names";
import { stateOf } from "@/api/states";
import { TimeChips, TimeFilter } from "@/components/time-filter";
import { conditionOf, countsAsked } from "./condition";
import { CHOICES, type CasesSearch } from "./search";
import { removeView, saveView, useSavedViews } from "./views";

/** How many cases there are of each status, and that wait for a person; nothing until that is known. */
function useCounts(search: CasesSearch): Partial<Record<string, number>> | undefined {
  const asked = countsAsked(search);
  const byStatus = useQuery(caseCountsQuery(asked.byStatus)).data?.counts;
  const person = useQuery(caseCountsQuery(asked.forPerson)).data?.counts[""];
  if (!byStatus || person === undefined) return undefined;
  return { ...byStatus, running: Math.max(0, (byStatus["running"] ?? 0) - person), person };
}

const WORDS: Record<(typeof CHOICES)[number], string> = { running: "running", person: "for a person", suspended: "suspended", completed: "completed", failed: "failed", cancelled: "cancelled" };

export function StatusFilter({ search }: { search: CasesSearch }) {
  const counts = useCounts(search);
  const shown = (count: number | undefined) => <span className="number">{counts && number(count ?? 0)}</span>;
  return (
    <nav className="segments" aria-label="Status">
      <Link from="/cases" to="/cases" search={(before) => ({ ...before, status: undefined })} className="segment" aria-current={!search.status ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
        all {shown(CHOICES.reduce((total, status) => total + (counts?.[status] ?? 0), 0))}
      </Link>
      {CHOICES.map((status) => (
        <Link key={status} from="/cases" to="/cases" search={(before) => ({ ...before, status })} className="segment" aria-current={search.status === status ? "true" : undefined} title={status === "person" ? "They are not over, and wait for a person: for a task, or for a failure that no rule takes up" : status === "running" ? "Those that run, without those that wait for a person" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
          <StateIcon state={stateOf(status)} />
          {WORDS[status]} {shown(counts?.[status])}
        </Link>
      ))}
    </nav>
  );
}

export function Filters({ search, error }: { search: CasesSearch; error: unknown }) {
  const navigate = useNavigate({ from: "/cases" });
  const flows = useQuery(flowsQuery).data ?? [];
  const change = (changed: Partial<CasesSearch>) => void navigate({ search: (before) => ({ ...before, ...changed }) });
  const [open, setOpen] = useState(false);
  const used = [search.where, search.status, search.flow, search.since, search.ended, search.all].filter(Boolean).length;
  return (
    <div className={open ? "case-filters open" : "case-filters"}>
      <button type="button" className="button case-filters-button" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "down" : "right"} size={12} /> {used ? `Filters: ${used} in use` : "Filters"}
      </button>
      <div className="toolbar">
        <WhereField
          label="Condition"
          value={search.where ?? ""}
          names={CASE_NAMES}
          places={CASE_PLACES}
          values={{ flow: flows.map((flow) => flow.name) }}
          placeholder="words, as failed NA12878, or flow == 'align' && started > ago('1 day')"
          error={error}
          onSearch={(where) => change({ where: where.trim() || undefined })}
        />
        <Views search={search} />
      </div>
      <div className="toolbar">
        <StatusFilter search={search} />
        <select aria-label="Flow" value={search.flow ?? ""} onChange={(event) => change({ flow: event.target.value || undefined })}>
          <option value="">all flows</option>
          {flows.map((flow) => (
            <option key={flow.name}>{flow.name}</option>
          ))}
          {search.flow && !flows.some((flow) => flow.name === search.flow) && <option>{search.flow}</option>}
        </select>
        <TimeFilter label="Started" span={search.since} from={search.from} to={search.to} onChange={(since, from, to) => change({ since, from, to })} />
        <TimeFilter label="Ended" span={search.ended} from={search.endedFrom} to={search.endedTo} onChange={(ended, endedFrom, endedTo) => change({ ended, endedFrom, endedTo })} />
        <label className="check-label">
          <input type="checkbox" checked={search.all ?? false} onChange={(event) => change({ all: event.target.checked || undefined })} />
          with called and mending cases
        </label>
      </div>
      <TimeChips what="cases" began="started" search={search} onChange={change} />
    </div>
  );
}

function Views({ search }: { search: CasesSearch }) {
  const views = useSavedViews();
  const navigate = useNavigate({ from: "/cases" });
  const [naming, setNaming] = useState(false);
  const [name, setName] = useState("");
  const save = () => {
    if (!name.trim()) return;
    saveView(name.trim(), search);
    setNaming(false);
    setName("");
  };
  return (
    <>
      <Menu
        label="Saved views"
        acts={[
          ...views.map((view) => ({ id: `show ${view.name}`, label: view.name, hint: conditionOf(view.search), run: () => void navigate({ search: view.search }) })),
          { id: "save", label: "Save what is shown as a view", run: () => setNaming(true) },
          ...views.map((view) => ({ id: `remove ${view.name}`, label: `Remove ${view.name}`, danger: true, run: () => removeView(view.name) })),
        ]}
      >
        <Icon name="star" size={14} /> Views
      </Menu>
      <Dialog
        title="Save this view"
        open={naming}
        onClose={() => setNaming(false)}
        footer={
          <button type="button" className="button primary" disabled={!name.trim()} onClick={save}>
            Save
          </button>
        }
      >
        <Field label="Name" hint="It is kept in this browser. The address of the page is a link that others can open.">
          {(ids) => <input {...ids} value={name} onChange={(event) => setName(event.target.value)} onKeyDown={(event) => event.key === "Enter" && save()} />}
        </Field>
      </Dialog>
    </>
  );
}
