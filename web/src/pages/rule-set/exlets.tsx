/** The exlets of a set: what each does, and how often it helped. */
import { useQuery } from "@tanstack/react-query";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import { exletResultsQuery, type RuleSetView } from "@/components/recovery/queries";
import { EmptyState } from "@/components/states-of-page";
import { Word } from "@/components/word";

export function Exlets({ set }: { set: RuleSetView }) {
  const results = useQuery(exletResultsQuery);
  const exlets = Object.entries(set.rules?.exlets ?? {});
  if (!exlets.length) return <EmptyState title="This set has no exlets of its own" icon="tool">Its rules use the exlets of the default rules.</EmptyState>;
  return (
    <div className="scrolls" role="region" aria-label="Exlets" tabIndex={0}>
      <table className="plain-table framed">
        <thead><tr><th><Word of="exlet">Exlet</Word></th><th>Steps</th><th>Helped</th></tr></thead>
        <tbody>
          {exlets.map(([name, flow]) => {
            const result = results.data?.find((each) => each.exlet === name);
            return (
              <tr key={name}>
                <td><strong>{name}</strong><br /><span className="muted">{flow.description}</span></td>
                <td><ExletSteps flow={flow} /></td>
                <td className="nowrap">{result ? `${result.recovered} of ${result.known}, in ${result.groups} causes` : <span className="muted">not tried yet</span>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
