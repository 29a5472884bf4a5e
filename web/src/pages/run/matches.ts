import type { FlowView } from "@/api/queries";
import { personText } from "@/components/person-text";

/** Whether a flow is one of those that are looked for: by its name, what it does, or who deployed it. */
export function matches(view: FlowView, find: string): boolean {
  return `${view.name} ${view.description} ${personText(view.deployed_by)}`.toLowerCase().includes(find.toLowerCase());
}
