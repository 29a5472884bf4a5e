import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { serverOption } from "@/components/command-line";
import { personText } from "@/components/person-text";
import { TextWithCode } from "@/components/text-with-code";

it("shows what stands between backticks as code, and one alone as it is", () => {
  expect(renderToStaticMarkup(<TextWithCode text="write `a: 1`, or `b`." />)).toBe("write <code>a: 1</code>, or <code>b</code>.");
  expect(renderToStaticMarkup(<TextWithCode text="a ` alone" />)).toBe("a ` alone");
});

it("says who did something where nobody has a name", () => {
  expect([personText("ann"), personText("local"), personText(undefined)]).toEqual(["ann", "somebody on the server's machine", ""]);
  expect(serverOption("http://127.0.0.1:8642")).toBe("--server http://127.0.0.1:8642");
});
