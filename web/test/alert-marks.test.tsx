import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { AlertBadge, unseenFirst } from "@/components/alert-marks";

it("what somebody has seen comes after what nobody has, in its order", () => {
  const alerts = [{ id: "a", acknowledged_at: 5 }, { id: "b", acknowledged_at: 0 }, { id: "c", acknowledged_at: 3 }, { id: "d", acknowledged_at: 0 }];
  expect(unseenFirst(alerts).map((each) => each.id)).toEqual(["b", "d", "a", "c"]);
});

it("a warning has the mark of a warning", () => {
  expect(renderToStaticMarkup(<AlertBadge severity="warning" />)).toContain('data-icon="failures"');
});
