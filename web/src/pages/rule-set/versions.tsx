/** The versions of a set, what has changed between two of them, and the way back to one. */
import { personText } from "@/components/person-text";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/session";
import { ConfirmDialog } from "@/components/dialog";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { DataTable, type Column } from "@/components/data-table";
import { number, plural } from "@/components/format";
import { restoreRules, ruleSetQuery, ruleVersionsQuery, type Rule, type RuleSet, type RuleSetView } from "@/components/recovery/queries";
import { treesOf, treeWords } from "@/components/recovery/rule-walk";
import { Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";

const route = getRouteApi("/rules/$name");

interface Change {
  key: string;
  where: string;
  kind: "added" | "changed" | "removed";
  lines: [string, string, string][];
}

function rulesIn(set: RuleSet | null | undefined): Map<string, { where: string; rule: Rule }> {
  const found = new Map<string, { where: string; rule: Rule }>();
  for (const { type, task, tree } of treesOf(set?.trees as Parameters<typeof treesOf>[0])) for (const rule of Object.values(tree.rules)) found.set(`${type}/${task}/${rule.id}`, { where: `rule ${rule.id}, ${treeWords(type, task)}`, rule });
  return found;
}

const FIELDS: [keyof Rule, string][] = [["condition", "if"], ["exlet", "do"], ["note", "note"], ["passive", "on trial"], ["on_true", "if it holds"], ["on_false", "if not"]];

/** Differences only: rules and exlets that were added, changed or removed. */
export function changesBetween(before: RuleSet | null | undefined, after: RuleSet | null | undefined): Change[] {
  const old = rulesIn(before);
  const now = rulesIn(after);
  const changes: Change[] = [];
  for (const key of new Set([...old.keys(), ...now.keys()])) {
    const one = old.get(key);
    const other = now.get(key);
    const lines = FIELDS.map(([field, word]): [string, string, string] => [word, String(one?.rule[field] ?? ""), String(other?.rule[field] ?? "")]).filter(([, left, right]) => left !== right);
    if (lines.length || !one || !other) changes.push({ key, where: (other ?? one)?.where ?? key, kind: !one ? "added" : !other ? "removed" : "changed", lines });
  }
  const exlets = new Set([...Object.keys(before?.exlets ?? {}), ...Object.keys(after?.exlets ?? {})]);
  for (const name of exlets) {
    const [one, other] = [before?.exlets?.[name], after?.exlets?.[name]];
    if (JSON.stringify(one) !== JSON.stringify(other)) changes.push({ key: `exlet ${name}`, where: `exlet ${name}`, kind: !one ? "added" : !other ? "removed" : "changed", lines: [] });
  }
  return changes;
}

export function Versions({ set }: { set: RuleSetView }) {
  const { version } = route.useSearch();
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const mayRestore = useMay("restore_rules");
  const [restoring, setRestoring] = useState<number | null>(null);
  const versions = useQuery(ruleVersionsQuery(set.name));
  const columns: Column<RuleSetView>[] = [
    { id: "version", narrow: 1, narrowCell: (row) => `version ${number(row.version)}`, header: "Version", width: "80px", align: "end", value: (row) => row.version, cell: (row) => number(row.version) },
    { id: "at", header: "Made", width: "100px", value: (row) => row.at, cell: (row) => <Time at={row.at} none="as shipped" /> },
    { id: "author", narrow: 1, header: "By", width: "120px", value: (row) => row.author, cell: (row) => personText(row.author) },
    { id: "rules", narrow: 1, narrowCell: (row) => plural(row.rule_count, "rule"), header: "Rules", width: "70px", align: "end", value: (row) => row.rule_count, cell: (row) => number(row.rule_count) },
    { id: "note", narrow: 2, header: "Note", width: "minmax(200px, 3fr)", cell: (row) => <span title={row.note}>{row.note}</span> },
    { id: "act", narrow: 2, header: <span className="visually-hidden">Acts</span>, width: "100px", cell: (row) => (row.newest ? <span className="muted">in force</span> : mayRestore ? <button type="button" className="link-button" onClick={() => setRestoring(row.version)}>Restore</button> : null) },
  ];
  return (
    <Loaded query={versions}>
      {(rows) => (
        <>
          <WithDetails
            details={
              version !== undefined ? (
                <DetailsPane title={`From version ${version} to ${set.version}`} label="Differences" onClose={() => void navigate({ search: (before) => ({ ...before, version: undefined }) })}>
                  <Differences set={set} version={version} />
                </DetailsPane>
              ) : null
            }
          >
            <DataTable label="Versions" rows={rows} columns={columns} rowId={(row) => String(row.version)} at={version === undefined ? undefined : String(version)} onOpen={(row) => void navigate({ search: (before) => ({ ...before, version: row.version }) })} />
          </WithDetails>
          <ConfirmDialog
            title={`Restore version ${restoring}`}
            open={restoring !== null}
            act="Restore"
            onClose={() => setRestoring(null)}
            onAct={async () => {
              const made = await restoreRules(set.name, restoring ?? 0);
              toast("good", `Version ${restoring} is in force again, as version ${made.version}`);
              void client.invalidateQueries({ queryKey: ["rules"] });
            }}
            will={<><p>Version {restoring} becomes the next version, {set.version + 1}, and is in force at once, for running cases too. No version is lost.</p>{restoring !== null && <Differences set={set} version={restoring} />}</>}
          />
        </>
      )}
    </Loaded>
  );
}

function Differences({ set, version }: { set: RuleSetView; version: number }) {
  const other = useQuery(ruleSetQuery(set.name, version));
  return (
    <Loaded query={other}>
      {(found) => {
        const changes = changesBetween(found?.rules, set.rules);
        if (!changes.length) return <p className="muted">{version === set.version ? "This is the version in force. Choose an earlier one to see what has changed since." : "Nothing differs."}</p>;
        return (
          <ul className="stack" aria-label="Differences">
            {changes.map((each) => (
              <li key={each.key} className="version-change">
                <strong>{each.where}</strong> <span className={`chip ${each.kind}`}>{each.kind}</span>
                {each.lines.map(([word, left, right]) => (
                  <div key={word} className="change-line">
                    <span className="muted">{word}</span>
                    <div>
                      {left && <del><code>{left}</code></del>}
                      {right && <ins><code>{right}</code></ins>}
                    </div>
                  </div>
                ))}
              </li>
            ))}
          </ul>
        );
      }}
    </Loaded>
  );
}
