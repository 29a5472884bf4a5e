import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { useMay } from "@/api/session";
import { DataTable, type Column } from "@/components/data-table";
import { plural } from "@/components/format";
import { Time } from "@/components/time";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Word } from "@/components/word";
import { HISTORY_LAST, historyQuery, type HistoryEntry } from "./queries";

const route = getRouteApi("/cases/$case");

interface Entry extends HistoryEntry {
  key: string;
  times: number;
  until: number;
}

const QUIET = new Set(["schedule", "assign", "start"]);

/** A step of an exlet is done long before the job that it submits again has ended: so it is not called mended yet. */
function whatWord(entry: HistoryEntry): string {
  const step: Record<string, string> = { mending: "step begun", mended: "step done" };
  return (entry.exlet && step[entry.what]) || entry.what;
}

/** Compact: of what goes well only the ends, and the same thing of the same name counted as one. */
export function compacted(entries: readonly HistoryEntry[]): Entry[] {
  const found: Entry[] = [];
  for (const entry of entries) {
    const trouble = Boolean(entry.decision || entry.exlet || entry.source === "person" || entry.source === "service");
    if (QUIET.has(entry.lifecycle) && entry.item && !trouble) continue;
    const last = found.at(-1);
    if (last && last.what === entry.what && last.name === entry.name && last.source === entry.source && !trouble && !entry.message) {
      last.times += 1;
      last.until = entry.at;
    } else {
      found.push({ ...entry, key: `${found.length}`, times: 1, until: entry.at });
    }
  }
  return found;
}

export default function HistoryView({ id }: { id: string }) {
  const { full, entries } = route.useSearch();
  const all = entries === "all";
  const asked = useQuery(historyQuery(id, { all, brief: !full }));
  // What is known at once is shown until the rest of it has been worked out.
  const brief = useQuery({ ...historyQuery(id, { all, brief: true }), enabled: Boolean(full) && !asked.isSuccess });
  const query = asked.data === undefined && full && !asked.isError ? brief : asked;
  const isToCome = Boolean(full) && (asked.isPending || asked.isPlaceholderData);
  const mayAudit = useMay("find_audit");
  const cut = !all && query.data?.length === HISTORY_LAST;
  const columns = useMemo<Column<Entry>[]>(
    () => [
      { id: "at", narrow: 1, header: "When", width: "96px", cell: (entry) => <Time at={entry.at} /> },
      { id: "who", narrow: 2, narrowCell: (entry) => <>{personText(entry.by) || entry.source}{entry.message && `: ${entry.message}`}{entry.exlet && <> · <Word of="exlet" /> {entry.exlet}</>}</>, header: "Who", width: "minmax(172px, 0.9fr)", cell: (entry) => personText(entry.by) || entry.source },
      { id: "what", narrow: 1, header: "What", width: "minmax(110px, 0.7fr)", cell: (entry) => <>{entry.what === "offered" ? <Word of="offered" /> : whatWord(entry)}{entry.times > 1 && <span className="muted"> {plural(entry.times, "time")}</span>}</> },
      {
        id: "item",
        narrow: 1,
        header: "Item",
        width: "minmax(120px, 1fr)",
        cell: (entry) =>
          entry.item && entry.times === 1 ? (
            <Link from="/cases/$case" to="." search={(before) => ({ ...before, item: entry.item ?? undefined })}>
              {entry.item}
            </Link>
          ) : (
            entry.name
          ),
      },
      { id: "message", header: "Said", width: "minmax(200px, 3fr)", cell: (entry) => <span title={entry.message}>{entry.message}{entry.exlet && <>{entry.message && " · "}<Word of="exlet" /> {entry.exlet}</>}</span> },
    ],
    [],
  );
  const rows = useMemo(() => {
    if (!query.data) return [];
    return full ? query.data.map((entry, at) => ({ ...entry, key: String(at), times: 1, until: entry.at })) : compacted(query.data);
  }, [query.data, full]);
  return (
    <div className="timeline">
      <div className="toolbar">
        <nav className="segments" aria-label="How much">
          <Link from="/cases/$case" to="." search={(before) => ({ ...before, full: undefined })} className="segment" aria-current={!full ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
            compact
          </Link>
          <Link from="/cases/$case" to="." search={(before) => ({ ...before, full: "yes" as const })} className="segment" aria-current={full ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
            full
          </Link>
        </nav>
        <span className="muted">{query.data ? `${plural(rows.length, "line")} of ${cut ? "the last " : ""}${plural(query.data.length, "event")}${isToCome ? " so far" : ""}` : ""}</span>
        <span className="muted" role="status">
          {isToCome && query.data && "What the engine ordered is being worked out; in a large case that takes a while."}
        </span>
        {cut && (
          <Link from="/cases/$case" to="." search={(before) => ({ ...before, entries: "all" as const })}>
            read all events
          </Link>
        )}
        <span className="spread" />
        {mayAudit && (
          <Link to="/administration" search={{ view: "audit", object: id }}>
            Who did what with this case
          </Link>
        )}
        <a className="button small" href={`/api/v1/cases/${encodeURIComponent(id)}/history?format=xes`} download={`${id}.xes`}>
          XES, for process mining
        </a>
        <Word of="XES">What is XES?</Word>
      </div>
      <Loaded query={query}>{() => <DataTable label="History" rows={rows} columns={columns} rowId={(entry) => entry.key} empty={<EmptyState title="Nothing has happened yet" />} />}</Loaded>
    </div>
  );
}
