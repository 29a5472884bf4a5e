/** What failed in two cases, side by side: an item of a loop stands beside the one that is for the same value in the other case,
 * whatever their indexes, and any other item beside the one of its name. */
import type { ItemView } from "@/api/queries";

type Item = Pick<ItemView, "item" | "name" | "element">;
type Sides<T> = [left: T | undefined, right: T | undefined];

export function failedRows<T extends Item>(left: readonly T[], right: readonly T[]): Sides<T>[] {
  const others = [...right];
  const beside = left.map((item): Sides<T> => {
    const at = others.findIndex((other) => subject(other) === subject(item));
    return [item, at < 0 ? undefined : others.splice(at, 1)[0]];
  });
  return [...beside, ...others.map((item): Sides<T> => [undefined, item])];
}

function subject({ item, name, element }: Item): string {
  return element ? JSON.stringify([name, element]) : item;
}
