// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, render } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { flowFileQuery } from "@/api/queries";
import { meQuery } from "@/api/session";
import { NextVersion } from "@/pages/flow/next-version";

vi.mock("@/components/code-view", () => ({
  CodeView: ({ text, label, onChange }: { text: string; label: string; onChange: (text: string) => void }) => <textarea aria-label={label} value={text} onChange={(event) => onChange(event.target.value)} />,
}));
vi.mock("@/pages/flow/flow-drawing", () => ({ Picture: () => null }));

let client: QueryClient;

beforeEach(() => {
  globalThis.fetch = vi.fn(() => new Promise<Response>(() => undefined));
  client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(meQuery.queryKey, { name: "ann", may: ["deploy"] } as never);
});

afterEach(cleanup);

/** The page after so many versions were deployed. */
function page(version: number) {
  client.setQueryData(flowFileQuery("night").queryKey, { flow: "night", digest: `d${version}`, file: "night.yaml", text: `# version ${version}`, beside: [], at: 0, by: "", reason: "" });
  return (
    <QueryClientProvider client={client}>
      <NextVersion view={{ name: "night", version, digest: `d${version}` } as never} onDeployed={() => undefined} />
    </QueryClientProvider>
  );
}

it("keeps what is written where a version is deployed meanwhile, until that one is asked for", async () => {
  const { getByLabelText, getByRole, findByText, queryByRole, rerender } = render(page(1));
  const field = getByLabelText("Flow file");
  fireEvent.change(field, { target: { value: "# mine" } });
  rerender(page(2));
  await findByText(/Version 2 was deployed meanwhile.* began with version 1/);
  expect(getByLabelText("Flow file")).toBe(field);
  expect(field).toHaveProperty("value", "# mine");
  fireEvent.click(getByRole("button", { name: "Load version 2, which replaces what is written here" }));
  expect(getByLabelText("Flow file")).toHaveProperty("value", "# version 2");
  expect(queryByRole("button", { name: /Load version/ })).toBeNull();
});

it("follows the newest version as long as nothing is written", async () => {
  const { findByDisplayValue, queryByText, rerender } = render(page(1));
  rerender(page(2));
  await findByDisplayValue("# version 2");
  expect(queryByText(/was deployed meanwhile/)).toBeNull();
});
