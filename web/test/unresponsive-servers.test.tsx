// @vitest-environment jsdom
import { act, render } from "@testing-library/react";
import { expect, it } from "vitest";
import { noteUnresponsiveServers, useUnresponsiveServers } from "@/api/unresponsive-servers";

function Missing() {
  return <p>{useUnresponsiveServers()}</p>;
}

it("says which servers have not answered until they answer the same question", () => {
  const { container } = render(<Missing />);
  const answered = (path: string, names = "") => act(() => noteUnresponsiveServers(path, new Headers(names ? { "Mendflow-Unheard": names } : {})));
  answered("/api/v1/pilots", "north-2, north-3");
  answered("/api/v1/overview?all=true", "north-2");
  expect(container.textContent).toBe("north-2, north-3");
  answered("/api/v1/cases");
  answered("/api/v1/pilots");
  expect(container.textContent).toBe("north-2");
  answered("/api/v1/overview");
  expect(container.textContent).toBe("");
});
