import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask } from "@/api/client";
import { flowsQuery } from "@/api/queries";
import { Dialog } from "@/components/dialog";
import { Field } from "@/components/field";
import { number } from "@/components/format";
import { Icon } from "@/components/icon";
import { Menu } from "@/components/menu";
import { StateIcon } from "@/components/state-badge";
import { CASE_NAMES, WhereField } from "@/components/where-field";
import { stateOf, wordOf } from "@/api/states";
import { conditionOf } from "./condition";
import { SPANS, STATUSES, type CasesSearch } from "./search";
import { removeView, saveView, useSavedViews } from "./views";

/** How many cases there are of each status, whatever status is chosen. */
function useCounts(search: CasesSearch) {
  const where = conditionOf(search, "status");
  return useQuery({
    queryKey: ["cases", "counts", where],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/cases/count", { params: { query: { where, by: "status" } }, signal })),
    placeholderData: (before) => before,
  });
}

export function StatusFilter({ search }: { search: CasesSearch }) {
  const counts = useCounts(search).data?.counts ?? {};
  const all = Object.values(counts).reduce((total, count) => total + count, 0);
  return (
    <nav className="segments" aria-label="Status">
      <Link from="/cases" to="/cases" search={(before) => ({ ...before, status: undefined })} className="segment" aria-current={!search.status ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
        all <span className="number">{number(all)}</span>
      </Link>
      {STATUSES.filter((status) => counts[status] || status === search.status || status === "running" || status === "failed").map((status) => (
        <Link key={status} from="/cases" to="/cases" search={(before) => ({ ...before, status })} className="segment" aria-current={search.status === status ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
          <StateIcon state={stateOf(status)} />
          {wordOf(status)} <span className="number">{number(counts[status] ?? 0)}</span>
        </Link>
      ))}
    </nav>
  );
}

export function Filters({ search, error }: { search: CasesSearch; error: unknown }) {
  const navigate = useNavigate({ from: "/cases" });
  const flows = useQuery(flowsQuery).data ?? [];
  const change = (changed: Partial<CasesSearch>) => void navigate({ search: (before) => ({ ...before, ...changed }) });
  return (
    <>
      <div className="toolbar">
        <WhereField
          label="Condition"
          value={search.where ?? ""}
          names={CASE_NAMES}
          values={{ flow: flows.map((flow) => flow.name) }}
          placeholder="flow == 'align' && fault.category == 'memory' && started > ago('1 day')"
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
        <select aria-label="Started" value={search.since ?? ""} onChange={(event) => change({ since: SPANS.find((span) => span === event.target.value) })}>
          <option value="">of all times</option>
          {SPANS.map((span) => (
            <option key={span} value={span}>
              in the last {span === "1h" ? "hour" : span === "1 day" ? "day" : span}
            </option>
          ))}
        </select>
        <label className="check-label">
          <input type="checkbox" checked={search.all ?? false} onChange={(event) => change({ all: event.target.checked || undefined })} />
          with called and mending cases
        </label>
      </div>
    </>
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
