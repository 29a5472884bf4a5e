/** Rules that the past suggests, with their evidence: adopted on trial or in force, or dismissed with a reason. */
import { personText } from "@/components/person-text";
import { TextWithCode } from "@/components/text-with-code";
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
import { adoptProposal, dismissProposal, learningSettingsQuery, proposalsQuery, type Proposal } from "@/components/recovery/queries";
import { setWords, treeWords } from "@/components/recovery/rule-walk";
import { StateBadge } from "@/components/state-badge";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { toast } from "@/components/toasts";
import { Glossed } from "@/components/word";
import { adoptionPolicyWords, adoptionWords, coverageWords, KINDS, promotionWords, resultWords, stateWords, thresholdWords, trialWords } from "./proposal-words";
import "@/components/recovery/recovery.css";

const route = getRouteApi("/proposals");

export default function ProposalsPage() {
  const { proposal, every = false } = route.useSearch();
  const navigate = route.useNavigate();
  const proposals = useQuery(proposalsQuery(every));
  const settings = useQuery(learningSettingsQuery).data;
  const current = proposals.data?.find((each) => each.id === proposal);
  return (
    <Page
      title="Proposals"
      fill
      lead={`Rules that the server suggests, from failures, repairs and what came of them. ${adoptionPolicyWords(settings)}`}
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
                  {thresholdWords(settings)}
                </EmptyState>
              }
            />
          </WithDetails>
        )}
      </Loaded>
    </Page>
  );
}

const COLUMNS: Column<Proposal>[] = [
  { id: "what", narrow: 1, header: "What", width: "minmax(220px, 3fr)", value: (row) => row.sentence, cell: (row) => <span title={row.sentence}>{row.sentence}</span> },
  { id: "cause", narrow: 2, header: "Cause", width: "minmax(180px, 2fr)", value: (row) => row.message, cell: (row) => <CauseText text={row.message} /> },
  { id: "kind", header: "Kind", width: "104px", value: (row) => row.kind, cell: (row) => KINDS[row.kind] },
  { id: "state", narrow: 2, header: "State", width: "100px", value: (row) => row.state, cell: (row) => <StateBadge state={row.state === "open" ? "person" : row.state === "on-trial" ? "repairing" : row.state === "in-force" ? "done" : "stopped"} word={row.state.replace("-", " ")} /> },
  { id: "sure", header: "So far", width: "180px", value: (row) => row.evidence.sure?.mean ?? 0, cell: resultWords },
  { id: "catches", header: "Holds for", width: "100px", align: "end", value: (row) => row.evidence.caught, cell: (row) => `${row.evidence.caught} of ${row.evidence.of}` },
  { id: "spoils", header: "Takes from others", width: "130px", align: "end", value: (row) => row.evidence.spoilt, cell: (row) => row.evidence.spoilt },
  { id: "at", narrow: 2, header: "Since", width: "90px", value: (row) => row.at, cell: (row) => <Time at={row.at} /> },
];

const REASONS = ["The author of the job knows about it", "It is mended at its cause", "The repair would do harm"];

function ProposalView({ proposal }: { proposal: Proposal }) {
  const client = useQueryClient();
  const mayAdopt = useMay("adopt_proposal");
  const mayDismiss = useMay("dismiss_proposal");
  const [dialog, setDialog] = useState<"" | "trial" | "force" | "dismiss">("");
  const settings = useQuery(learningSettingsQuery).data;
  const [wished, setAfter] = useState<number | null>(null);
  const after = wished ?? settings?.promote_after ?? 0;
  const [why, setWhy] = useState("");
  const { evidence } = proposal;
  const decided = (said: string) => {
    toast("good", said);
    void Promise.all(["proposals", "rules", "failures"].map((key) => client.invalidateQueries({ queryKey: [key] })));
  };
  const adopt = async (inForce: boolean) => decided(stateWords(await adoptProposal(proposal.id, { in_force: inForce, promote_after: inForce || wished === null ? null : wished, note: "" })));
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
      {stateWords(proposal) && <p>{stateWords(proposal)}</p>}
      <CodeView text={proposal.condition} label="Condition" language="cel" />
      <Facts
        facts={[
          ["then", <strong key="exlet">{proposal.exlet || "nothing"}</strong>],
          ["in", <Glossed key="in" text={`${setWords(proposal.rules)}, ${treeWords(proposal.type, proposal.task)}`} only={["abort"]} />],
          ["rule", proposal.rule !== null && <Link to="/rules/$name" params={{ name: proposal.rules }} search={{ tree: `${proposal.type}/${proposal.task}`, rule: proposal.rule }}>rule {proposal.rule}</Link>],
          ["failures", `${plural(evidence.failures, "failure")} in ${plural(evidence.cases, "case")}, of ${evidence.flows.join(", ")}`],
          [proposal.kind === "retire" ? "tried in vain" : "holds for", coverageWords(proposal)],
          ["takes from others", proposal.kind !== "retire" && `${plural(evidence.spoilt, "failure")} that another repair has cured`],
          ["so far", resultWords(proposal)],
          ["breaks", evidence.breaks && <TextWithCode key="breaks" text={evidence.breaks} />],
          ["adopted by", personText(proposal.adopted_by)],
          ["dismissed by", proposal.dismissed_by && `${personText(proposal.dismissed_by)}: ${proposal.why}`],
        ]}
      />
      {evidence.similar.length > 0 && (
        <table className="plain-table">
          <thead><tr><th>Similar repairs</th><th>Among</th><th>Helped</th><th>Likely rate</th></tr></thead>
          <tbody>{evidence.similar.map((each) => <tr key={`${each.exlet}-${each.among}`}><td>{each.exlet}</td><td>{each.among}</td><td>{each.rate.helped} of {each.rate.tried}</td><td>{Math.round(each.rate.low * 100)} to {Math.round(each.rate.high * 100)} %</td></tr>)}</tbody>
        </table>
      )}
      {onTrial && <p>{trialWords(proposal)}</p>}
      <ConfirmDialog title="Adopt on trial" open={dialog === "trial"} act="Adopt on trial" onClose={() => setDialog("")} onAct={() => adopt(false)} will={<><p>{adoptionWords(proposal, false)}</p><Field label="Put in force by itself after so many decisions that agree" hint="0: never">{(ids) => <input {...ids} type="number" min={0} value={after} onChange={(event) => setAfter(Math.max(0, Math.trunc(Number(event.target.value))))} />}</Field><p>{promotionWords(after)}</p></>} />
      <ConfirmDialog title={proposal.kind === "retire" ? "Retire the rule" : "Put in force"} open={dialog === "force"} act={proposal.kind === "retire" ? "Retire the rule" : "Put in force"} onClose={() => setDialog("")} onAct={() => adopt(true)} will={<p>{adoptionWords(proposal, true)} That is a new version of {setWords(proposal.rules)}; an earlier one can be restored.</p>} />
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
