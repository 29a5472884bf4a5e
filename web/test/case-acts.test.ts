import { afterEach, expect, it, vi } from "vitest";
import { CASE_ACTS } from "@/components/case-acts";

const decision = (id: string) => ({ id: `${id}/1:1:1/abort`, case: id, group: "g-1", state: "waiting", replaced_by: null });

afterEach(() => {
  vi.unstubAllGlobals();
});

it("rules are applied to one case alone, also where a message began it", async () => {
  const skipped: unknown[] = [];
  const answer = (value: unknown) => new Response(JSON.stringify(value), { headers: { "Content-Type": "application/json" } });
  vi.stubGlobal("fetch", async (wish: Request | string, more?: RequestInit) => {
    const url = typeof wish === "string" ? wish : wish.url;
    if (url.includes("/apply")) {
      skipped.push(JSON.parse(typeof wish === "string" ? String(more?.body) : await wish.text()).skip);
      return answer({ group: "g-1", taken_up: ["talks-soap.1.3/1:1:1/abort"], left: [], refused: {} });
    }
    return answer(url.includes("case=") ? [decision("talks-soap.1.3")] : ["talks-soap.1.3", "talks-soap.2", "talks-soap.12", "night-1.2"].map(decision));
  });
  await CASE_ACTS.find((each) => each.name === "apply")?.run("talks-soap.1", "");
  expect(skipped).toEqual([["talks-soap.2", "talks-soap.12", "night-1"]]);
});
