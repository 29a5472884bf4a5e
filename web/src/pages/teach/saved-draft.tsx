/** The rule as it was saved. It is not changed here any more: that would change nothing of what is saved. */
import { Link } from "@tanstack/react-router";
import { Panel } from "@/components/page";
import { ExletSteps } from "@/components/recovery/exlet-steps";
import type { Flow } from "@/components/recovery/queries";
import { setWords } from "@/components/recovery/rule-walk";
import type { RuleDraft, SavedRule } from "./draft";

export function SavedDraft({ draft, saved, exlet, flow }: { draft: RuleDraft; saved: SavedRule; exlet: string; flow: Flow | undefined }) {
  return (
    <Panel title="The rule as it is saved">
      <div className="stack">
        <p className="when-then">
          <span className="muted">When</span> <code>{draft.condition}</code> <span className="muted">then</span> <strong>{exlet}</strong>
        </p>
        {flow && <ExletSteps flow={flow} />}
        <p className="muted">
          To change it, open{" "}
          <Link to="/rules/$name" params={{ name: saved.rules }} search={{ rule: saved.rule, tree: `${saved.type}/${saved.task}` }}>
            its page in {setWords(saved.rules)}
          </Link>
          : each change there is saved as a new version, and earlier ones are kept.
        </p>
      </div>
    </Panel>
  );
}
