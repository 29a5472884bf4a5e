// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, cleanup, fireEvent, render, type RenderResult } from "@testing-library/react";
import type { ReactElement, ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { meQuery } from "@/api/session";
import { ApplyPanel } from "@/components/recovery/apply-panel";
import { applyQuery, conclusionQuery, ruleSetQuery } from "@/components/recovery/queries";
import { RunForm } from "@/pages/new-run/run-form";

vi.mock("@tanstack/react-router", async (original) => ({
  ...(await original<object>()),
  useNavigate: () => () => undefined,
  Link: (props: { children: ReactNode }) => props.children,
}));

const VIEW = { group: { id: "g1", waiting: 2 }, samples: [{ id: "d1", flow: "night" }], open_waiting: 2, open_failed: 0 } as never;
let client: QueryClient;

beforeEach(() => {
  globalThis.fetch = vi.fn(() => new Promise<Response>(() => undefined)); // a server that takes its time
  client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(meQuery.queryKey, { name: "ann", may: ["start", "apply_rules", "evaluate_rules"] } as never);
  client.setQueryData(applyQuery("g1", false).queryKey, { started_at: 0 } as never);
  client.setQueryData(ruleSetQuery("night").queryKey, { version: 3 } as never);
});

afterEach(cleanup);

function drawn(page: ReactElement): RenderResult {
  return render(<QueryClientProvider client={client}>{page}</QueryClientProvider>);
}

it("keeps what is offered while the rules are read again", async () => {
  client.setQueryData(conclusionQuery("night", "d1", 3).queryKey, { conclusion: null } as never);
  const { getByRole } = drawn(<ApplyPanel view={VIEW} />);
  const again = getByRole("button", { name: /Try again as they are/ });
  again.focus();
  await act(async () => void client.invalidateQueries({ queryKey: ["rules"] }));
  expect(fetch).toHaveBeenCalled();
  expect(document.activeElement).toBe(again);
  expect(getByRole("button", { name: /Apply to 2 failures/ })).toHaveProperty("disabled", true);
});

it("does not take what was known before a rule was saved for an answer", () => {
  client.setQueryData(conclusionQuery("night", "d1", 3).queryKey, { conclusion: null } as never);
  const { queryByRole, queryByText } = drawn(<ApplyPanel view={VIEW} saved={{ rules: "night", version: 4, inForce: true }} />);
  expect(queryByRole("button", { name: /Try again as they are/ })).toBeNull();
  expect(queryByText(/No rule that is in force holds/)).toBeNull();
});

it("offers to apply while the rules that hold are read again", async () => {
  client.setQueryData(conclusionQuery("night", "d1", 3).queryKey, { conclusion: { exlet: "more-time" } } as never);
  const { getByRole } = drawn(<ApplyPanel view={VIEW} />);
  await act(async () => void client.invalidateQueries({ queryKey: ["rules"] }));
  expect(getByRole("button", { name: /Apply to 2 failures/ })).toHaveProperty("disabled", false);
});

it("leads to the first field with a mistake at the first try", () => {
  const { container } = drawn(<RunForm flow={{ name: "f", inputs: { sample: { required: true, type: "string" } } } as never} />);
  fireEvent.submit(container.querySelector("form") as HTMLFormElement);
  expect(document.activeElement?.getAttribute("aria-invalid")).toBe("true");
});
