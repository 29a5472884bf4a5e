import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState } from "react";
import { caseQuery, type ItemView } from "@/api/queries";
import { wordOf } from "@/api/states";
import { DataTable, type Column } from "@/components/data-table";
import { number } from "@/components/format";
import { Icon } from "@/components/icon";
import { elementOf } from "@/components/item-text";
import { RowReason } from "@/components/row-reason";
import { EmptyState, ErrorState, Loading } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { WhereField } from "@/components/where-field";
import { ITEM_NAMES, ITEM_PLACES } from "@/components/where-names";
import { AskedTask, isAsked, ItemState } from "./asked-task";
import { hasWords, itemsIn, itemsQuery } from "./queries";
import { Ran, ranMs, triesOf } from "./ran";

const route = getRouteApi("/cases/$case");
const FIRST_ROWS = 40;
const SHOWN = ["failed", "person", "running", "waiting", "completed", "cached", "skipped", "cancelled"] as const;

function ItemWhy({ item }: { item: ItemView }) {
  if (isAsked(item)) return <AskedTask item={item} />;
  if (item.state === "completed" && !item.why && triesOf(item) > 1) return <span className="muted">mended: completed at attempt {triesOf(item)}</span>;
  return <RowReason text={item.why} />;
}

/** Where it runs, or ran last; what waits may yet run anywhere. */
function pilotOf(item: ItemView): string {
  return item.state === "waiting" ? "" : (item.pilot ?? item.attempts.at(-1)?.pilot ?? "");
}

const COLUMNS: readonly Column<ItemView>[] = [
  { id: "state", narrow: 1, header: "State", width: "124px", value: (item) => item.state, cell: (item) => <ItemState item={item} /> },
  { id: "item", narrow: 1, header: "Item", width: "minmax(140px, 1fr)", fits: (item) => `${item.item} ${elementOf(item)}`, value: (item) => item.item, cell: (item) => <>{item.item} {elementOf(item) && <span className="muted">{elementOf(item)}</span>}</> },
  { id: "kind", header: "Kind", width: "80px", value: (item) => item.kind, cell: (item) => item.kind },
  { id: "why", narrow: 2, header: "Why", width: "minmax(160px, 2fr)", cell: (item) => <ItemWhy item={item} /> },
  { id: "attempts", header: "Attempts", width: "88px", align: "end", isBlank: (item) => !triesOf(item), value: triesOf, cell: (item) => triesOf(item) || "" },
  { id: "pilot", header: "Pilot", width: "minmax(120px, 0.8fr)", isBlank: (item) => !pilotOf(item), value: pilotOf, cell: pilotOf },
  { id: "began", narrow: 2, header: "Began", width: "96px", value: (item) => item.created_at, cell: (item) => <Time at={item.created_at} /> },
  { id: "took", header: "Took", width: "92px", align: "end", value: (item) => ranMs(item, Date.now()), cell: (item) => <Ran item={item} /> },
];

/** Beside an item's pane there is room for these. */
const BESIDE = COLUMNS.filter(({ id }) => ["state", "item", "why", "took"].includes(id));

const PAUSE_MS = 300;

/** Words of an item: the server looks for them, as soon as nobody types any more. */
function FindItem({ value, onFind }: { value: string; onFind: (words: string) => void }) {
  const [text, setText] = useState(value);
  const [before, setBefore] = useState(value);
  if (before !== value) {
    setBefore(value);
    if (text.trim() !== value) setText(value);
  }
  useEffect(() => {
    if (text.trim() === value) return undefined;
    const timer = setTimeout(() => onFind(text.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, value, onFind]);
  return (
    <label className="search-field">
      <Icon name="search" size={14} />
      <input type="search" aria-label="Find an item" placeholder="Find an item: sample, job or error" title="Words of its name, of what it is for, or of why it failed" value={text} onChange={(event) => setText(event.target.value)} onKeyDown={(event) => event.key === "Enter" && onFind(text.trim())} />
    </label>
  );
}

export default function ItemsView({ id }: { id: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { state, also } = itemsIn(search.state);
  const query = useInfiniteQuery(itemsQuery(id, { name: search.name, state, where: search.where, also: [also, hasWords(search.find)].filter(Boolean).join(" && ") || undefined }));
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.data) ?? [], [query.data]);
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  // A page of an answer may be short where few of very many items match: the next one is asked for at once.
  const goesOn = rows.length < FIRST_ROWS && hasNextPage;
  useEffect(() => {
    if (goesOn) onEnd();
  }, [goesOn, onEnd]);
  const onFind = useCallback((find: string) => void navigate({ search: (before) => ({ ...before, find: find || undefined }), replace: true }), [navigate]);
  const held = useQuery(caseQuery(id)).data?.held.filter((each) => each.startsWith(`${id}:`)).length ?? 0;
  const narrowed = Boolean(search.state || search.name || search.where || search.find);
  return (
    <div className="timeline">
      <div className="toolbar items-toolbar">
        <nav className="segments" aria-label="State of items">
          <Link from="/cases/$case" to="." search={(before) => ({ ...before, state: undefined })} className="segment" aria-current={!search.state ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
            all
          </Link>
          {SHOWN.map((state) => (
            <Link key={state} from="/cases/$case" to="." search={(before) => ({ ...before, state })} className="segment" aria-current={search.state === state ? "true" : undefined} activeOptions={{ explicitUndefined: true, exact: true }}>
              {wordOf(state)}
            </Link>
          ))}
        </nav>
        {search.name && (
          <Link from="/cases/$case" to="." search={(before) => ({ ...before, name: undefined })} className="chip" aria-label={`Only ${search.name}: show all names`}>
            {search.name} ×
          </Link>
        )}
      </div>
      <div className="toolbar items-search">
        <FindItem value={search.find ?? ""} onFind={onFind} />
        <WhereField label="Condition for items" value={search.where ?? ""} names={ITEM_NAMES} places={ITEM_PLACES} placeholder="a condition: attempts > 1 && state == 'completed'" error={search.where ? query.error : null} onSearch={(where) => void navigate({ search: (before) => ({ ...before, where: where.trim() || undefined }) })} />
      </div>
      {(query.isPending || (goesOn && !rows.length)) && <Loading lines={6} />}
      {query.isError && !search.where && <ErrorState error={query.error} again={() => void query.refetch()} />}
      {query.isSuccess && !(goesOn && !rows.length) && (
        <DataTable
          label="Items"
          wraps
          rows={rows}
          columns={search.item ? BESIDE : COLUMNS}
          rowId={(item) => item.item}
          at={search.item ?? ""}
          onOpen={(item) => void navigate({ search: (before) => ({ ...before, item: item.item, line: undefined }), replace: Boolean(search.item) })}
          onEnd={onEnd}
          empty={
            <EmptyState title={narrowed ? "No item matches" : "Nothing has begun yet"} icon="filter" action={narrowed ? <Link from="/cases/$case" to="." search={{ view: "items" }} className="button">Show all items</Link> : undefined}>
              {search.state === "failed" && held > 0 && (
                <>
                  {held === 1 ? "One that failed is not over: it waits" : `${number(held)} that failed are not over: they wait`}{" "}
                  <Link from="/cases/$case" to="." search={(before) => ({ ...before, state: "person" })}>for a person</Link>.
                </>
              )}
            </EmptyState>
          }
        />
      )}
    </div>
  );
}
