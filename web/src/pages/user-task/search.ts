/** What the page keeps in its address. */
export function search(_raw: Record<string, unknown>) {
  return {};
}
