import { personText } from "@/components/person-text";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, ask, type Schemas } from "@/api/client";
import { useMayAll } from "@/api/session";
import { useQuestion, useRefresh } from "@/components/acts";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { bytes, duration, plural } from "@/components/format";
import { ChoicesField, SizeField, TextField, TimeField } from "@/components/form-fields";
import { Icon } from "@/components/icon";
import { Panel } from "@/components/page";
import { readSize, readTime } from "@/components/quantities";
import { EmptyState, ErrorState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

type RuleView = Schemas["RetentionRuleView"];
type Rule = Schemas["PruneRule"];
type Over = "cancelled" | "completed" | "failed";

const STATES: readonly (readonly [Over, string])[] = [["completed", "completed"], ["failed", "failed"], ["cancelled", "cancelled"]];

interface Wish {
  flow: string;
  states: Over[];
  older: string;
  keep: string;
  size: string;
}

const NO_WISH: Wish = { flow: "", states: ["completed"], older: "90 d", keep: "", size: "" };

function isWrong(wish: Wish): boolean {
  return (wish.older.trim() !== "" && readTime(wish.older) === null) || (wish.size.trim() !== "" && readSize(wish.size) === null) || (wish.keep.trim() !== "" && !/^\d+$/.test(wish.keep.trim())) || !wish.states.length;
}

function ruleOf(wish: Wish): Rule {
  return {
    flow: wish.flow.trim(),
    states: wish.states,
    older_than_ms: readTime(wish.older) ?? 0,
    ...(wish.keep.trim() ? { keep: Number(wish.keep) } : {}),
    ...(wish.size.trim() ? { max_bytes: readSize(wish.size) ?? 0 } : {}),
  };
}

function WishFields({ wish, onChange }: { wish: Wish; onChange: (wish: Wish) => void }) {
  return (
    <>
      <ChoicesField label="Cases that are" choices={STATES} chosen={wish.states} onChange={(states) => onChange({ ...wish, states })} />
      <div className="two-fields">
        <TimeField label="Older than" value={wish.older} onChange={(older) => onChange({ ...wish, older })} />
        <TextField label="Of the flow" value={wish.flow} onChange={(flow) => onChange({ ...wish, flow })} hint="Empty: of every flow." />
        <TextField label="But keep the newest" value={wish.keep} onChange={(keep) => onChange({ ...wish, keep })} placeholder="10" />
        <SizeField label="Until they take at most" value={wish.size} onChange={(size) => onChange({ ...wish, size })} placeholder="50 GB" />
      </div>
    </>
  );
}

function RuleDialog({ onClose }: { onClose: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState("");
  const [wish, setWish] = useState(NO_WISH);
  return (
    <ConfirmDialog
      title="New rule of retention"
      act="Set"
      danger
      open
      onClose={onClose}
      disabled={!name.trim() || isWrong(wish)}
      will={
        <div className="stack">
          <p>Once an hour, cases that fit are removed with their files, for good. What others refer to stays. Look below first what would go.</p>
          <TextField label="Name" required value={name} onChange={setName} />
          <WishFields wish={wish} onChange={setWish} />
        </div>
      }
      onAct={async () => {
        const body = { ...ruleOf(wish), name: name.trim() };
        await ask(api.PUT("/api/v1/retention/{name}", { params: { path: { name: body.name } }, body }));
        toast("good", `${body.name} is set`);
        await refresh("retention");
      }}
    />
  );
}

function PruneResult({ id }: { id: string }) {
  const query = useQuery({
    queryKey: ["prunes", id],
    queryFn: ({ signal }) => ask(api.GET("/api/v1/prunes/{id}", { params: { path: { id } }, signal })),
    refetchInterval: (each) => (each.state.data?.state === "running" || !each.state.data ? 500 : false),
  });
  return (
    <Loaded query={query}>
      {(run) => (
        <div className="stack tight">
          <p role="status">
            {run.state === "running" ? "Looking …" : run.dry_run ? `${plural(run.cases, "case")} would go, with ${plural(run.files, "file")} and ${bytes(run.bytes)}.` : `${plural(run.cases, "case")} went, with ${plural(run.files, "file")} and ${bytes(run.bytes)}.`}
            {run.spared > 0 && ` ${plural(run.spared, "case stays", "cases stay")}, for the reason that is beside each.`}
            {run.problem && ` ${run.problem}`}
          </p>
          <ul className="plain-list" aria-label="Cases">
            {run.pruned_cases.slice(0, 50).map((each) => (
              <li key={each.case}>{run.dry_run ? <Link to="/cases/$case" params={{ case: each.case }}>{each.case}</Link> : each.case} <span className="muted">{each.status} · {bytes(each.bytes)} · {each.reason}</span></li>
            ))}
            {run.spared_cases.slice(0, 20).map((each) => <li key={each.case}>{each.case} <span className="muted">stays: {each.reason}</span></li>)}
          </ul>
        </div>
      )}
    </Loaded>
  );
}

function Prune() {
  const [wish, setWish] = useState(NO_WISH);
  const [run, setRun] = useState<{ id: string; wish: string } | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const [question, askFirst] = useQuestion("cases", "prunes");
  const begin = async (dry: boolean) => {
    const answer = await ask(api.POST("/api/v1/prunes", { body: { rules: [ruleOf(wish)], dry_run: dry } }));
    setRun({ id: answer.id, wish: JSON.stringify(wish) });
  };
  const look = async () => {
    setRefused(null);
    try {
      await begin(true);
    } catch (error) {
      setRefused(error);
    }
  };
  const looked = run?.wish === JSON.stringify(wish);
  return (
    <Panel title="Remove cases now">
      <div className="stack">
        <WishFields wish={wish} onChange={setWish} />
        <div className="row">
          <button type="button" className="button" disabled={isWrong(wish)} onClick={() => void look()}>
            <Icon name="search" size={14} /> What would go
          </button>
          <button type="button" className="button danger" disabled={isWrong(wish) || !looked} title={looked ? undefined : "Look first what would go"}
            onClick={() => askFirst({ title: "Remove these cases", will: "What is listed is removed with its files, for good.", act: "Remove", danger: true, done: "They are being removed", onAct: () => begin(false) })}
          >
            Remove them …
          </button>
        </div>
        {refused !== null && <ErrorState error={refused} compact />}
        {run && looked && <PruneResult id={run.id} />}
      </div>
      {question}
    </Panel>
  );
}

export function Retention() {
  const may = useMayAll();
  const [making, setMaking] = useState(false);
  const [question, askFirst] = useQuestion("retention");
  const query = useQuery({ queryKey: ["retention"], queryFn: ({ signal }) => ask(api.GET("/api/v1/retention", { signal })) });
  const columns: Column<RuleView>[] = [
    { id: "name", narrow: 1, header: "Rule", width: "minmax(110px, 1fr)", value: (row) => row.rule.name, cell: (row) => row.rule.name },
    { id: "states", narrow: 1, header: "Cases", width: "minmax(130px, 1.2fr)", cell: (row) => `${(row.rule.states ?? ["over"]).join(", ")}${row.rule.flow ? ` of ${row.rule.flow}` : ""}` },
    { id: "older", narrow: 2, narrowCell: (row) => (row.rule.older_than_ms ? `older than ${duration(row.rule.older_than_ms)}` : ""), header: "Older than", width: "100px", value: (row) => row.rule.older_than_ms ?? 0, cell: (row) => (row.rule.older_than_ms ? duration(row.rule.older_than_ms) : "") },
    { id: "keep", narrow: 2, header: "Kept", width: "100px", cell: (row) => [row.rule.keep ? `${row.rule.keep} newest` : "", row.rule.max_bytes ? bytes(row.rule.max_bytes) : ""].filter(Boolean).join(", ") },
    { id: "set", header: "Set", width: "150px", value: (row) => row.set_at, cell: (row) => <><Time at={row.set_at} /> by {personText(row.set_by)}</> },
    { id: "acts", narrow: 2, header: "", width: "90px", cell: (row) => may("remove_retention_rule") && <button type="button" className="link-button" onClick={() => askFirst({ title: `Remove ${row.rule.name}`, will: "Nothing is removed by it any more.", act: "Remove", done: "Removed", onAct: () => ask(api.DELETE("/api/v1/retention/{name}", { params: { path: { name: row.rule.name } } })) })}>Remove …</button> },
  ];
  const button = may("put_retention_rule") && <button type="button" className="button" onClick={() => setMaking(true)}><Icon name="plus" size={14} /> New rule</button>;
  return (
    <div className="stack">
      <div className="row"><p className="muted">Cases that are over are kept until a rule, or somebody, removes them.</p><span className="spread" />{(query.data?.length ?? 0) > 0 && button}</div>
      <Loaded query={query}>
        {(rules) => <DataTable label="Rules of retention" inline rows={rules} columns={columns} rowId={(row) => row.rule.name} empty={<EmptyState title="Everything is kept" icon="data" action={button}>A rule removes cases that are over, once an hour.</EmptyState>} />}
      </Loaded>
      {may("prune") && <Prune />}
      {making && <RuleDialog onClose={() => setMaking(false)} />}
      {question}
    </div>
  );
}
