// @vitest-environment jsdom
import { QueryClient, QueryClientProvider, useQuery } from "@tanstack/react-query";
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { decisionQuery, failureValuesQuery } from "@/components/recovery/queries";
import { CaseAtHand } from "@/pages/teach/case-at-hand";

afterEach(cleanup);

const VIEW = { group: { id: "g1" }, samples: [{ id: "d1", flow: "night" }] } as never;
const DECISION = { id: "d1", flow: "night", fault: { message: "cold" }, context: { fault: { exit_code: 7 }, case: { data: { room: "north", lamp: "red" } } } };

function counted(path: string, value: unknown, elsewhere: number) {
  return { path, value, here: 1, of_here: 1, elsewhere, of_elsewhere: 100, succeeded: 0, known_succeeded: 0, conditions: [`${path} == ${JSON.stringify(value)}`] };
}

function counts(room: number, lamp: number) {
  return [counted("fault.exit_code", 7, 1), counted("case.data.room", "north", room), counted("case.data.lamp", "red", lamp)] as never;
}

function Shown() {
  return <CaseAtHand view={VIEW} decision={useQuery(decisionQuery("d1")) as never} at="d1" condition="" onTerm={() => undefined} onCase={() => undefined} />;
}

it("shows values that can be pointed at once their place is known, and leaves them there", async () => {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  globalThis.fetch = () => new Promise<Response>(() => undefined); // a server that takes its time
  client.setQueryData(decisionQuery("d1").queryKey, DECISION as never);
  render(
    <QueryClientProvider client={client}>
      <Shown />
    </QueryClientProvider>,
  );
  const values = () => screen.queryAllByTitle(/^(fault|case)\./).map((each) => each.title);
  expect(values()).toEqual([]);
  expect(screen.getByRole("status", { name: "Being compared with other failures" })).toBeTruthy();
  act(() => void client.setQueryData(failureValuesQuery("g1").queryKey, counts(2, 3)));
  await screen.findByTitle("fault.exit_code");
  const placed = values();
  expect(placed).toEqual(["fault.exit_code", "case.data.room", "case.data.lamp"]);
  act(() => void client.setQueryData(failureValuesQuery("g1").queryKey, counts(30, 0)));
  await screen.findByText(/30 of 100/);
  expect(values()).toEqual(placed);
});
