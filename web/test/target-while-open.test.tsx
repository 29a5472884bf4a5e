// @vitest-environment jsdom
import { cleanup, render, renderHook, screen } from "@testing-library/react";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import type { CaseView } from "@/api/queries";
import { CaseActDialog } from "@/components/case-act-dialog";
import { CASE_ACTS } from "@/components/case-acts";
import { useTargetWhileOpen } from "@/components/target-while-open";
import { settledText } from "@/components/recovery/decision-words";
import type { DecisionView } from "@/components/recovery/queries";

afterEach(cleanup);
vi.mock("@/components/dialog", () => ({ Dialog: (props: { title: string; children: ReactNode }) => <><h2>{props.title}</h2>{props.children}</> }));

it("keeps what was meant when it was opened, and forgets it when it is closed", () => {
  const { result, rerender } = renderHook(({ open, target }: { open: boolean; target?: string }) => useTargetWhileOpen(open, target), { initialProps: { open: true, target: undefined as string | undefined } });
  expect(result.current).toBe(undefined);
  const told = [["one", true], ["two", true], [undefined, true], ["two", false], ["three", true]] as const;
  expect(told.map(([target, open]) => (rerender({ open, target }), result.current))).toEqual(["one", "one", "one", undefined, "three"]);
});
it("asks about the cases that were chosen when it was opened, and says which have changed since", () => {
  const view = (id: string, status = "running") => ({ id, status, held: [], holds: [] }) as unknown as CaseView;
  const cancel = CASE_ACTS.find((each) => each.name === "cancel") ?? null;
  const dialog = (cases: CaseView[]) => (
    <QueryClientProvider client={new QueryClient()}>
      <CaseActDialog act={cancel} cases={cases} onClose={() => undefined} />
    </QueryClientProvider>
  );
  const { rerender } = render(dialog([view("night-1"), view("night-2")]));
  rerender(dialog([view("night-3"), view("night-2", "completed")]));
  expect(screen.getByText("Cancel: 2 cases")).toBeDefined();
  expect(screen.getByRole("status").textContent).toBe("Meanwhile night-2 changed: it is over.");
  expect(screen.getByText("1 case is left out: it is over.")).toBeDefined();
});
it("says what has become of a failure meanwhile", () => {
  const was = { case: "night-1", item: "solve", task: "solve", state: "waiting", handling: "waiting", replaced_by: "", exlet: "", ordered_by: "", result: "", note: "" } as unknown as DecisionView;
  expect(settledText(was, was)).toBe("");
  expect(settledText(was, undefined)).toBe("");
  expect(settledText(was, { ...was, state: "done", handling: "handled", exlet: "begin-again", ordered_by: "ada", result: "recovered" })).toBe("Meanwhile night-1 solve was settled: begin-again was done by order of ada: recovered. Nothing is done to it here.");
  expect(settledText(was, { ...was, handling: "run-again" })).toBe("Meanwhile night-1 solve was settled: its case was run again. Nothing is done to it here.");
});
