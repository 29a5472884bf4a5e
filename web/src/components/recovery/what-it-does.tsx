/** What the exlet of a rule does. */
import { useQuery } from "@tanstack/react-query";
import { ExletSteps } from "./exlet-steps";
import { ruleSetQuery, type RuleSetView } from "./queries";

/** The steps of its exlet, which may be one of the default rules. */
export function WhatItDoes({ set, exlet }: { set: RuleSetView; exlet: string }) {
  const own = set.rules?.exlets?.[exlet];
  const defaults = useQuery({ ...ruleSetQuery("*"), enabled: !own });
  const flow = own ?? defaults.data?.rules?.exlets?.[exlet];
  if (!flow) return null;
  return (
    <section aria-label={`What ${exlet} does`}>
      <h3>What {exlet} does</h3>
      {flow.description && <p className="muted">{flow.description}</p>}
      <ExletSteps flow={flow} />
    </section>
  );
}
