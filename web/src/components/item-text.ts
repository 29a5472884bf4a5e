/** How an item is called: by its index, and by the value of its loops that it is for. */

interface Named {
  item: string;
  element?: string;
}

/** What an item of a loop is for, where its number does not say it already: `measure[0]` is for `m31`, `count[3]` for 3. */
export function elementOf({ item, element }: Named): string {
  return !element || item.endsWith(`[${element}]`) ? "" : element;
}

/** `call[1] (PT-2)` */
export function itemText(view: Named): string {
  const element = elementOf(view);
  return element ? `${view.item} (${element})` : view.item;
}
