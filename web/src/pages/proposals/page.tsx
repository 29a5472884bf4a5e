/** Rules that the past suggests, with their evidence: adopted on trial or in force, or dismissed with a reason. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "@/api/session";
import { CodeView } from "@/components/code-view";
import { DataTable, type Column } from "@/components/data-table";
import { ConfirmDialog } from "@/components/dialog";
import { DetailsPane, WithDetails } from "@/components/drawer";
import { Field } from "@/components/field";
import { plural } from "@/components/format";
import { Facts, Page } from "@/components/page";
import { CauseText } from "@/components/recovery/message";
import { adoptProposal, dismissProposal, proposalsQuery, type Proposal } from "@/components/recovery/queries";
import { ruleWords, setWords, treeWords } from "@/components/recovery/rule-walk";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";
import { Glossed } from "@/components/word";
import "@/components/recovery/recovery.css";

const route = getRouteApi("/proposals");

export default function ProposalsPage() {
  const { proposal, every = false } = route.useSearch();
  const navigate = route.useNavigate();
  const proposals = useQuery(proposalsQuery(every));
  const current = proposals.data?.find((each) => each.id === proposal);
  return (
    <Page
      title="Proposals"
      fill
      lead="Rules that the server suggests, from failures, repairs and what came of them. None is adopted without a person, unless the administrator says so."
      actions={
        <label className="check-label">
          <input type="checkbox" checked={every} onChange={(event) => void navigate({ search: (before) => ({ ...before, every: event.target.checked || undefined }) })} /> also those that are decided
        </label>
      }
    >
      <Loaded query={proposals}>
        {(rows) => (
          <WithDetails
            details={
              current ? (
                <DetailsPane title={current.sentence} label="Proposal" onClose={() => void navigate({ search: (before) => ({ ...before, proposal: undefined }) })}>
                  <ProposalView key={current.id} proposal={current} />
                </DetailsPane>
              ) : null
            }
          >
            <DataTable
              label="Proposals"
              rows={rows}
              columns={COLUMNS}
              wraps
              rowId={(row) => row.id}
              at={proposal}
              onOpen={(row) => void navigate({ search: (before) => ({ ...before, proposal: row.id }) })}
              empty={
                <EmptyState title="Nothing is proposed now" icon="proposals" action={<Link to="/failures" className="button">See the failures</Link>}>
                  A rule is proposed after three failures of one cause that nobody took up, or when people make the same repair twice and it helps.
                </EmptyState>
              }
            />
          </WithDetails>
        )}
      </Loaded>
    </Page>
  );
}

function sure(proposal: Proposal): string {
  const rate = proposal.evidence.sure;
  return rate ? `${Math.round(rate.mean * 100)} % (${Math.round(rate.low * 100)} to ${Math.round(rate.high * 100)})` : "not tried";
}

const KINDS: Record<Proposal["kind"], string> = { repair: "a repair", "by-hand": "as people did", stop: "try no more", retire: "retire a rule", avoid: "elsewhere", wait: "wait longer" };

const COLUMNS: Column<Proposal>[] = [
  { id: "what", narrow: 1, header: "What", width: "minmax(220px, 3fr)", value: (row) => row.sentence, cell: (row) => <span title={row.sentence}>{row.sentence}</span> },
  { id: "cause", narrow: 2, header: "Cause", width: "minmax(180px, 2fr)", value: (row) => row.message, cell: (row) => <CauseText text={row.message} /> },
  { id: "kind", header: "Kind", width: "104px", value: (row) => row.kind, cell: (row) => KINDS[row.kind] },
  { id: "state", narrow: 2, header: "State", width: "100px", value: (row) => row.state, cell: (row) => <StateBadge state={row.state === "open" ? "person" : row.state === "on-trial" ? "repairing" : row.state === "in-force" ? "done" : "stopped"} word={row.state.replace("-", " ")} /> },
  { id: "sure", header: "How likely it helps", width: "150px", value: (row) => row.evidence.sure?.mean ?? 0, cell: sure },
  { id: "catches", header: "Would catch", width: "100px", align: "end", value: (row) => row.evidence.caught, cell: (row) => `${row.evidence.caught} of ${row.evidence.of}` },
  { id: "spoils", header: "Would spoil", width: "100px", align: "end", value: (row) => row.evidence.spoilt, cell: (row) => row.evidence.spoilt },
  { id: "at", narrow: 2, header: "Since", width: "90px", value: (row) => row.at, cell: (row) => <Time at={row.at} /> },
];

const REASONS = ["The author of the job knows about it", "It is mended at its cause", "The repair would do harm"];

function ProposalView({ proposal }: { proposal: Proposal }) {
  const client = useQueryClient();
  const mayAdopt = useMay("adopt_proposal");
  const mayDismiss = useMay("dismiss_proposal");
  const [dialog, setDialog] = useState<"" | "trial" | "force" | "dismiss">("");
  const [after, setAfter] = useState(0);
  const [why, setWhy] = useState("");
  const { evidence, trial } = proposal;
  const decided = (said: string) => {
    toast("good", said);
    void Promise.all(["proposals", "rules", "failures"].map((key) => client.invalidateQueries({ queryKey: [key] })));
  };
  const open = proposal.state === "open";
  const onTrial = proposal.state === "on-trial";
  return (
    <>
      <div className="row wrap">
        {open && mayAdopt && proposal.kind !== "retire" && <button type="button" className="button small primary" onClick={() => setDialog("trial")}>Adopt on trial</button>}
        {(open || onTrial) && mayAdopt && <button type="button" className="button small" disabled={evidence.breaks !== ""} onClick={() => setDialog("force")}>{proposal.kind === "retire" ? "Retire the rule" : "Put in force"}</button>}
        {(open || onTrial) && mayDismiss && <button type="button" className="button small" onClick={() => setDialog("dismiss")}>Dismiss</button>}
        {proposal.group && <Link to="/failures/$group" params={{ group: proposal.group }} className="button small">See the failures</Link>}
      </div>
      {proposal.again && <p>{proposal.again}</p>}
      <CodeView text={proposal.condition} label="Condition" language="cel" />
      <Facts
        facts={[
          ["then", <strong key="exlet">{proposal.exlet || "nothing"}</strong>],
          ["in", <Glossed key="in" text={`${setWords(proposal.rules)}, ${treeWords(proposal.type, proposal.task)}`} only={["abort"]} />],
          ["rule", proposal.rule !== null && <Link to="/rules/$name" params={{ name: proposal.rules }} search={{ tree: `${proposal.type}/${proposal.task}`, rule: proposal.rule }}>rule {proposal.rule}</Link>],
          ["failures", `${plural(evidence.failures, "failure")} in ${plural(evidence.cases, "case")}, of ${evidence.flows.join(", ")}`],
          ["would catch", `${evidence.caught} of ${evidence.of} that nothing helped`],
          ["would spoil", `${plural(evidence.spoilt, "failure")} that another repair has cured`],
          ["likely helps", sure(proposal)],
          ["breaks", evidence.breaks],
          ["adopted by", proposal.adopted_by],
          ["dismissed by", proposal.dismissed_by && `${proposal.dismissed_by}: ${proposal.why}`],
        ]}
      />
      {evidence.similar.length > 0 && (
        <table className="plain-table">
          <thead><tr><th>Similar repairs</th><th>Among</th><th>Helped</th><th>Likely rate</th></tr></thead>
          <tbody>{evidence.similar.map((each) => <tr key={`${each.exlet}-${each.among}`}><td>{each.exlet}</td><td>{each.among}</td><td>{each.rate.helped} of {each.rate.tried}</td><td>{Math.round(each.rate.low * 100)} to {Math.round(each.rate.high * 100)} %</td></tr>)}</tbody>
        </table>
      )}
      {(onTrial || trial.fired > 0) && <p>On trial it fired {plural(trial.fired, "time")}: {trial.agreed} agreed and helped, {trial.otherwise} were helped otherwise.</p>}
      <ConfirmDialog title="Adopt on trial" open={dialog === "trial"} act="Adopt on trial" onClose={() => setDialog("")} onAct={async () => { await adoptProposal(proposal.id, { in_force: false, promote_after: after || null, note: "" }); decided("It is on trial"); }} will={<><p>It becomes a rule that is asked and recorded, and does nothing.</p><Field label="Put in force by itself after so many decisions that agree" hint="0: never">{(ids) => <input {...ids} type="number" min={0} value={after} onChange={(event) => setAfter(Math.max(0, Number(event.target.value)))} />}</Field></>} />
      <ConfirmDialog title={proposal.kind === "retire" ? "Retire the rule" : "Put in force"} open={dialog === "force"} act="Put in force" onClose={() => setDialog("")} onAct={async () => { await adoptProposal(proposal.id, { in_force: true, promote_after: null, note: "" }); decided("It is in force"); }} will={<p>{proposal.kind === "retire" ? `${ruleWords(proposal, "Rule")} is taken out of use.` : `From now on ${proposal.exlet || "nothing"} is done where it holds.`} It is a new version of {setWords(proposal.rules)}, and an earlier one can be restored.</p>} />
      <ConfirmDialog
        title="Dismiss the proposal"
        open={dialog === "dismiss"}
        act="Dismiss"
        disabled={!why.trim()}
        onClose={() => setDialog("")}
        onAct={async () => { await dismissProposal(proposal.id, why); decided("It is not proposed again"); }}
        will={
          <>
            <p>It is remembered with your reason, and not proposed again unless such failures become clearly more frequent.</p>
            <Field label="Why" required>{(ids) => <textarea {...ids} rows={2} value={why} onChange={(event) => setWhy(event.target.value)} />}</Field>
            <div className="row wrap">{REASONS.map((each) => <button key={each} type="button" className="chip pick" onClick={() => setWhy(each)}>{each}</button>)}</div>
          </>
        }
      />
    </>
  );
}
