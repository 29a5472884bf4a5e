/** Which inputs of a flow its jobs ask for as a size, such as that of their memory. */

const AS_IT_IS = /^\$\{\{\s*inputs\.(\w+)\s*\}\}$/;

export function sizeInputs(flow: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  const walk = (value: unknown, name: string, within: string): void => {
    if (typeof value === "string" && within === "resources" && name.endsWith("_bytes")) {
      const input = AS_IT_IS.exec(value)?.[1];
      if (input) found.add(input);
    } else if (Array.isArray(value)) for (const each of value) walk(each, "", name);
    else if (typeof value === "object" && value !== null) for (const [each, inner] of Object.entries(value)) walk(inner, each, name);
  };
  walk(flow, "", "");
  return found;
}
