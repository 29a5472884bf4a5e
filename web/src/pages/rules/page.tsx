/** All rule sets: those of flows, and the default rules, which are asked where a flow's own conclude nothing. */
import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { CountLink } from "@/components/count-link";
import { LAPTOP_PX, useNarrow } from "@/app/screen-widths";
import { DataTable, type Column } from "@/components/data-table";
import { number, plural } from "@/components/format";
import { Icon } from "@/components/icon";
import { Page } from "@/components/page";
import { ruleSetsQuery, type RuleSetView } from "@/components/recovery/queries";
import { setWords } from "@/components/recovery/rule-walk";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { Word } from "@/components/word";
import "@/components/recovery/recovery.css";

const route = getRouteApi("/rules");

export default function RulesPage() {
  const { find = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const sets = useQuery(ruleSetsQuery);
  const isNarrow = useNarrow(LAPTOP_PX);
  const rows = useMemo(
    () => (sets.data ?? []).filter((each) => `${each.name} ${setWords(each.name)} ${each.exlets.join(" ")}`.toLowerCase().includes(find.toLowerCase())).toSorted((one, other) => Number(one.name === "*") - Number(other.name === "*") || other.at - one.at),
    [sets.data, find],
  );
  return (
    <Page
      title="Rules"
      fill
      lead={sets.data && <>{plural(sets.data.reduce((sum, each) => sum + each.rule_count, 0), "rule")} in {plural(sets.data.length, "set")}: each says which repair is done when something fails. A flow’s own rules are asked first, then the <Word of="default rules" />.</>}
      actions={
        <label className="search-field">
          <Icon name="search" size={14} />
          <input type="search" aria-label="Find a rule set or an exlet" placeholder="Flow or exlet" value={find} onChange={(event) => void navigate({ search: { find: event.target.value || undefined }, replace: true })} />
        </label>
      }
    >
      <Loaded query={sets}>
        {() => (
          <DataTable
            label="Rule sets"
            rows={rows}
            columns={isNarrow ? NARROW : COLUMNS}
            rowId={(row) => row.name}
            onOpen={(row) => void navigate({ to: "/rules/$name", params: { name: row.name } })}
            empty={<EmptyState title="No rule set matches" icon="filter" action={<Link to="/rules" className="button">Show all</Link>}>A flow gets its rules when somebody teaches one of its failures.</EmptyState>}
          />
        )}
      </Loaded>
    </Page>
  );
}

const COLUMNS: Column<RuleSetView>[] = [
  { id: "name", header: "Rules of", width: "minmax(150px, 1.4fr)", value: (row) => row.name, cell: (row) => <Link to="/rules/$name" params={{ name: row.name }}>{row.name === "*" ? "the default rules (*)" : row.name}</Link> },
  { id: "rules", header: "Rules", width: "70px", align: "end", value: (row) => row.rule_count, cell: (row) => number(row.rule_count) },
  { id: "trial", header: "On trial", about: "on trial", width: "92px", align: "end", value: (row) => row.passive_count, cell: (row) => <CountLink count={row.passive_count} what="rules on trial" link={{ to: "/rules/$name", params: { name: row.name }, search: { view: "trial" } }} /> },
  { id: "types", header: "Asked at", about: "exception", width: "minmax(120px, 1.6fr)", value: (row) => row.types.join(), cell: (row) => row.types.join(", ") },
  { id: "exlets", header: "Exlets", about: "exlets", width: "minmax(190px, 2.6fr)", value: (row) => row.exlets.length, cell: (row) => <span title={row.exlets.join(", ")}>{row.exlets.join(", ")}</span> },
  { id: "version", header: "Version", width: "72px", align: "end", value: (row) => row.version, cell: (row) => <Link to="/rules/$name" params={{ name: row.name }} search={{ view: "versions" }}>{row.version}</Link> },
  { id: "at", header: "Changed", width: "100px", value: (row) => row.at, cell: (row) => <Time at={row.at} none="as shipped" /> },
  { id: "author", header: "By", width: "80px", value: (row) => row.author, cell: (row) => personText(row.author) },
  { id: "note", header: "Note", width: "minmax(120px, 1.4fr)", cell: (row) => <span title={row.note}>{row.note}</span> },
];

/** On a phone, or a tablet, a row has its numbers in words. */
const NARROW: Column<RuleSetView>[] = [
  ...COLUMNS.filter(({ id }) => id === "name").map((each) => ({ ...each, narrow: 1 as const })),
  { id: "numbers", narrow: 2, header: "Rules", width: "1fr", cell: (row) => `${plural(row.rule_count, "rule")}${row.passive_count ? `, ${number(row.passive_count)} on trial` : ""} · ${plural(row.exlets.length, "exlet")}` },
  ...COLUMNS.filter(({ id }) => id === "at").map((each) => ({ ...each, narrow: 2 as const })),
];
