import { expect, it } from "vitest";
import { ApiError } from "@/api/errors";

it("keeps what the API said and adds what to do", () => {
  const error = ApiError.of(404, { code: "not-found", message: "there is no case 'x'", fields: { case: "x", server: "host-3" } });
  expect(error.message).toBe("there is no case 'x'");
  expect(error.whatToDo).toContain("removed");
  expect(error.details).toEqual([["server", "host-3"]]);
});
it("does not show a page of a proxy as a message", () => {
  expect(ApiError.of(502, "<html>Bad gateway</html>").message).toBe("the server answered with status 502");
});
