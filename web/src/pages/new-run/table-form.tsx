/** Start several cases at once: a table from a spreadsheet, whose first line names inputs, and each of whose rows is a case. */
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { writeExactly } from "@/api/exact-json";
import { useRefresh } from "@/components/acts";
import { takeChosen } from "@/components/chosen-files";
import { useInvalidFieldFocus } from "@/components/invalid-field-focus";
import { AreaField } from "@/components/form-fields";
import { plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { ErrorState } from "@/components/states-of-page";
import { toast, toastError } from "@/components/toasts";
import { USUAL_CACHE, type FlowToRun } from "./run-form";
import "@/components/recovery/recovery.css";
import { listing, problemsOf, readStarts, type StartRow } from "./table-rows";

const PROBLEMS_SHOWN = 20;

/** A value as the case gets it: a text that looks like data is told apart by its quotes. */
function Value({ value }: { value: unknown }) {
  if (value === undefined) return <span className="muted">as the flow has it</span>;
  return <span className={typeof value === "string" ? undefined : "mono"}>{typeof value === "string" ? value : writeExactly(value)}</span>;
}

function Row({ row, names, made }: { row: StartRow; names: readonly string[]; made: string | undefined }) {
  return (
    <tr>
      <th scope="row">{row.line}</th>
      {names.map((name) => (
        <td key={name}>{row.problems[name] ? <span className="field-problem">{row.problems[name]}</span> : <Value value={row.values[name]} />}</td>
      ))}
      <td>{made && <Link to="/cases/$case" params={{ case: made }}>{made}</Link>}</td>
    </tr>
  );
}

export function TableForm({ flow }: { flow: FlowToRun }) {
  const refresh = useRefresh();
  const inputs = useMemo(() => flow.inputs ?? {}, [flow.inputs]);
  const [text, setText] = useState("");
  const [tries, setTries] = useState(0);
  useInvalidFieldFocus(tries);
  const [busy, setBusy] = useState(false);
  const [batch, setBatch] = useState(newBatch);
  const [made, setMade] = useState<string[]>([]);
  const [refused, setRefused] = useState<unknown>(null);
  const table = useMemo(() => readStarts(inputs, text), [inputs, text]);
  const problems = useMemo(() => problemsOf(table), [table]);
  const { rows } = table;
  const isDone = rows.length > 0 && made.length === rows.length;
  const begun = made.length > 0 || busy;
  const change = (next: string) => {
    setText(next);
    setMade([]);
    setRefused(null);
    setBatch(newBatch());
  };
  const start = async () => {
    setTries(tries + 1);
    if (!rows.length || problems.length) return;
    setBusy(true);
    setRefused(null);
    const ids = [...made];
    try {
      // Each row has a key: one whose answer got lost is not started twice.
      for (const row of rows.slice(ids.length)) {
        const body: Schemas["StartBody"] = { flow: flow.name, inputs: row.values, cache: USUAL_CACHE, key: `${batch.key}-${row.line}` };
        ids.push((await ask(api.POST("/api/v1/cases", { body }))).id);
        setMade([...ids]);
      }
      toast("good", `${plural(ids.length, "case")} started`);
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
      void refresh("cases", "overview");
    }
  };
  const failed = rows[made.length];
  const problem = tries > 0 && !text.trim() ? "Paste a table, or pick a file" : problems.length > 1 ? `${plural(problems.length, "problem")}, told below` : (problems[0] ?? null);
  return (
    <Panel title={`Several cases of ${flow.name}`}>
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        {!begun && (
          <>
            <AreaField label="Table" required mono rows={8} value={text} onChange={change} problem={problem} hint={`Copied from a spreadsheet, or CSV. The first line names inputs (${Object.keys(inputs).join(", ") || "this flow has none"}); each line below is a case. What has an empty cell is left to the flow.`} />
            <label className="button small file-button">
              <Icon name="file" size={14} /> A .csv or .tsv file
              <input
                type="file"
                accept=".csv,.tsv,.txt,text/csv,text/tab-separated-values"
                aria-label="A .csv or .tsv file"
                onChange={(event) => {
                  const [file] = takeChosen(event.target);
                  if (file) void file.text().then(change, toastError);
                }}
              />
            </label>
          </>
        )}
        {problems.length > 1 && (
          <ul className="plain-list" aria-label="Problems of the table">
            {problems.slice(0, PROBLEMS_SHOWN).map((each) => <li key={each} className="field-problem">{each}</li>)}
            {problems.length > PROBLEMS_SHOWN && <li className="muted">and {problems.length - PROBLEMS_SHOWN} more</li>}
          </ul>
        )}
        {rows.length > 0 && (
          <div className="table-of-starts">
            <table className="plain-table" aria-label="What would start">
              <thead>
                <tr>
                  <th scope="col">Line</th>
                  {table.names.map((name) => <th key={name} scope="col" className={Object.hasOwn(inputs, name) ? undefined : "field-problem"}>{name}</th>)}
                  <th scope="col">Case</th>
                </tr>
              </thead>
              <tbody>{rows.map((row, at) => <Row key={row.line} row={row} names={table.names} made={made[at]} />)}</tbody>
            </table>
          </div>
        )}
        {refused !== null && (
          <>
            <ErrorState error={refused} compact />
            <p role="status">{made.length ? `${plural(made.length, "case was", "cases were")} started, up to line ${rows[made.length - 1]?.line}; line ${failed?.line} was refused, and what follows was not tried.` : `Line ${failed?.line} was refused: nothing was started.`}</p>
          </>
        )}
        <div className="row wrap">
          {!isDone && (
            <button type="submit" className="button primary" disabled={busy || (text.trim() !== "" && problems.length > 0)}>
              <Icon name="run" size={14} /> {busy ? `Started ${made.length} of ${rows.length}` : made.length ? `Start the other ${rows.length - made.length}` : rows.length ? `Start ${plural(rows.length, "case")}` : "Start them"}
            </button>
          )}
          {made.length > 0 && !busy && (
            <>
              <Link to="/cases" search={listing(flow.name, made, batch.at)} className={isDone ? "button primary" : "button"}>
                See {made.length === 1 ? "the case" : `the ${made.length} cases`}
              </Link>
              <button type="button" className="button" onClick={() => change("")}>
                Another table
              </button>
            </>
          )}
        </div>
      </form>
    </Panel>
  );
}

function newBatch(): { key: string; at: number } {
  return { key: `table-${[...crypto.getRandomValues(new Uint32Array(3))].map((each) => each.toString(36)).join("")}`, at: Date.now() - 60_000 };
}
