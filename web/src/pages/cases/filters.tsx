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
import { conditionOf, countsAsked, fieldTime } from "./condition";
import { CHOICES, SPANS, type CasesSearch, type Span } from "./search";
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
      <TimeChips search={search} onChange={change} />
    </div>
  );
}

const SPAN_WORDS: Record<Span, string> = { "1h": "in the last hour", today: "today", yesterday: "yesterday", "1 day": "in the last 24 hours", "7 days": "in the last 7 days", "30 days": "in the last 30 days", between: "from … to …" };

/** When cases were started, or ended: one of the usual spans, or between two times, of which either may be left out. */
function TimeFilter(props: { label: string; span: Span | undefined; from: string | undefined; to: string | undefined; onChange: (span: Span | undefined, from?: string, to?: string) => void }) {
  const { label, span, from, to, onChange } = props;
  const choose = (next: Span | undefined) => (next === "between" ? onChange(next, fieldTime(new Date().setHours(0, 0, 0, 0))) : onChange(next));
  return (
    <span className="time-filter">
      <select aria-label={label} value={span ?? ""} onChange={(event) => choose(SPANS.find((each) => each === event.target.value))}>
        <option value="">{label.toLowerCase()} at any time</option>
        {SPANS.map((each) => (
          <option key={each} value={each}>
            {label.toLowerCase()} {SPAN_WORDS[each]}
          </option>
        ))}
      </select>
      {span === "between" && (
        <>
          <input type="datetime-local" aria-label={`${label} from`} value={from ?? ""} onChange={(event) => onChange("between", event.target.value || undefined, to)} />
          <span className="muted">to</span>
          <input type="datetime-local" aria-label={`${label} before`} value={to ?? ""} onChange={(event) => onChange("between", from, event.target.value || undefined)} />
        </>
      )}
    </span>
  );
}

function spanText(span: Span, from: string | undefined, to: string | undefined): string {
  if (span !== "between") return SPAN_WORDS[span];
  const shown = (text: string) => text.replace("T", " ");
  return [from && `since ${shown(from)}`, to && `before ${shown(to)}`].filter(Boolean).join(", ") || "at any time";
}

/** What the list is narrowed to by time, each to be taken away by a click: a link may have set it. */
function TimeChips({ search, onChange }: { search: CasesSearch; onChange: (changed: Partial<CasesSearch>) => void }) {
  const chips = [
    search.since && { text: `started ${spanText(search.since, search.from, search.to)}`, without: { since: undefined, from: undefined, to: undefined } },
    search.ended && { text: `ended ${spanText(search.ended, search.endedFrom, search.endedTo)}: without what is not over`, without: { ended: undefined, endedFrom: undefined, endedTo: undefined } },
  ].filter((each) => each !== undefined);
  if (!chips.length) return null;
  return (
    <div className="row wrap" role="group" aria-label="Only cases that">
      <span className="muted">Only cases that</span>
      {chips.map((each) => (
        <button key={each.text} type="button" className="chip pick" title="Take this filter away" onClick={() => onChange(each.without)}>
          {each.text} <Icon name="close" size={12} />
        </button>
      ))}
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
