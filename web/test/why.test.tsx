// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { whyQuery } from "@/api/queries";
import { Why } from "@/components/why";

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

it("shows the end of what was printed, where the error is", () => {
  vi.spyOn(HTMLElement.prototype, "scrollHeight", "get").mockReturnValue(138);
  const client = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  client.setQueryData(whyQuery("night-1:qc[0]").queryKey, { subject: "night-1:qc[0]", state: "failed", sentence: "it failed", facts: [], output: ["reads G01", "ValueError: no stars"], repairs: [], until: 0 } as never);
  render(
    <QueryClientProvider client={client}>
      <Why subject="night-1:qc[0]" />
    </QueryClientProvider>,
  );
  const shown = screen.getByRole("region", { name: /^End of the log of / });
  expect(shown.textContent).toBe("reads G01\nValueError: no stars");
  expect(shown.scrollTop).toBe(138);
});
