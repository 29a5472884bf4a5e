import { expect, it } from "vitest";
import { ApiError, asSentence } from "@/api/errors";

it("keeps what the API said and adds what to do", () => {
  const error = ApiError.of(404, { code: "not-found", message: "there is no case 'x'", fields: { case: "x", server: "host-3" } });
  expect(error.message).toBe("there is no case 'x'");
  expect(error.whatToDo).toContain("removed");
  expect(error.details).toEqual([["server", "host-3"]]);
});
it("does not show a page of a proxy as a message", () => {
  expect(ApiError.of(502, "<html>Bad gateway</html>").message).toBe("the server answered with status 502");
});
it("begins a sentence with a large letter, and leaves what is spelt as it is", () => {
  expect(asSentence("the file is not here")).toBe("The file is not here");
  for (const told of ["incoming/*.csv may not be read", "words.yaml is no flow", "align-7f3k has ended", "a_b is no name"]) expect(asSentence(told)).toBe(told);
});
it("does not send anybody to an administrator because of a path", () => {
  const refused = ApiError.of(403, { code: "forbidden", message: "input all: x/*.csv may not be read by this server", fields: { path: "x/*.csv" } });
  expect(refused.whatToDo).toContain("uploaded");
  expect(ApiError.of(403, { code: "forbidden", message: "no", fields: {} }).whatToDo).toContain("administrator");
});
