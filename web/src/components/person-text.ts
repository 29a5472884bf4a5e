/** Who did something: a server without tokens does not know who sits at a browser of its machine. */
export const LOCAL = "local";

export function personText(name: string | null | undefined): string {
  return name === LOCAL ? "somebody on the server's machine" : (name ?? "");
}
