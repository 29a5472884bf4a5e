import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { caseDecisionsQuery, DECISIONS_READ } from "@/api/queries";
import { DetailsPane } from "@/components/drawer";
import { Panel } from "@/components/page";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import { cameOf } from "@/components/recovery/decision-words";
import type { DecisionView } from "@/components/recovery/queries";
import { EmptyState, Loaded } from "@/components/states-of-page";
import { Time } from "@/components/time";
import { Word } from "@/components/word";
import { DecidedBy, repairsOf, useExlet } from "./item-repairs";
import { WhereTold } from "./told-notice";

/** An exlet that was run in a case: what it does, who decided that, and what came of it. */
export default function ExletDetails({ caseId, task, exlet, onClose }: { caseId: string; task: string; exlet: string; onClose: () => void }) {
  const query = useQuery(caseDecisionsQuery(caseId));
  return (
    <DetailsPane label={`Exlet ${exlet}`} title={<><Word of="exlet">Exlet</Word> {exlet}</>} onClose={onClose}>
      <Loaded query={query}>
        {(all) => {
          const found = repairsOf(all).filter((each) => each.exlet === exlet && each.task === task);
          return found[0] ? <ExletParts found={found} /> : <EmptyState title="Nothing is known of it here">{all.length >= DECISIONS_READ && `It is older than the newest ${DECISIONS_READ} decisions of this case, which are read here.`}</EmptyState>;
        }}
      </Loaded>
    </DetailsPane>
  );
}

function ExletParts({ found }: { found: readonly DecisionView[] }) {
  const [newest] = found;
  const flow = useExlet(newest);
  return (
    <>
      {flow?.description && <p>{flow.description}</p>}
      {found.some((each) => each.result === "told") && <WhereTold />}
      {flow && (
        <Panel title="What it does">
          <ExletSteps flow={flow} />
        </Panel>
      )}
      <Panel title="What it did here">
        <ul className="stack tight" aria-label="What it did here">
          {found.map((each) => (
            <li key={each.id}>
              {each.item && <Link from="/cases/$case" to="." search={(before) => ({ ...before, node: undefined, item: each.item ?? undefined })}>{each.item}</Link>}
              {each.item && ": "}
              <DecidedBy decision={each} /> decided it: {cameOf(each)} <span className="muted"><Time at={each.at} /></span>
              {each.exlet_case && <> · <Link to="/cases/$case" params={{ case: each.exlet_case }}>{each.exlet_case}</Link></>}
            </li>
          ))}
        </ul>
      </Panel>
    </>
  );
}
