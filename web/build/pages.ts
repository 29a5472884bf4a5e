/** After the build: a page for each address of the router, which names the files that this page needs beside those that all
 * need, so that a browser asks for all of them at once; and everything compressed, so that the server need not.
 *
 * `/cases/$case` becomes `pages/cases/_.html`; the server finds it by the address (`server/web_app.py`). */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import type { Plugin, Rolldown } from "vite";
import { firstPaint } from "./first-paint";

const COMPRESSED_FROM = 1024;
const LARGE = 400_000;
const COMPRESSED = /\.(js|css|html|svg)$/;
/** What a page shows first, of the parts that it loads by itself: not on a phone, where the line is slow and the words come first. */
const ALSO: Record<string, string> = { "/cases/$case": "/src/pages/case/graph-view.tsx" };
const NO_PHONE = ' media="(min-width: 640.02px)"';
const ROUTE = /path: "([^"]+)".*import\("@\/pages\/([^"]+)\/page"\)/g;

type Chunks = Rolldown.OutputChunk[];

function chunkOf(chunks: Chunks, module: string): Rolldown.OutputChunk {
  const found = chunks.find((chunk) => chunk.facadeModuleId?.endsWith(module));
  if (!found) throw new Error(`the build has no file for ${module}`);
  return found;
}

/** A chunk, and all that it cannot run without. */
function withImports(chunks: Chunks, chunk: Rolldown.OutputChunk, found = new Set<Rolldown.OutputChunk>()): Set<Rolldown.OutputChunk> {
  if (found.has(chunk)) return found;
  found.add(chunk);
  for (const name of chunk.imports) {
    const next = chunks.find((each) => each.fileName === name);
    if (next) withImports(chunks, next, found);
  }
  return found;
}

/** What is painted first needs no script: so scripts have to wait for the styles, where the line is slow. */
const SCRIPT = '<link rel="modulepreload" crossorigin fetchpriority="low"';

function links(chunks: Chunks, module: string, also: string | undefined, page: string): string {
  const needed = withImports(chunks, chunkOf(chunks, module));
  const later = also ? withImports(chunks, chunkOf(chunks, also)) : new Set<Rolldown.OutputChunk>();
  const lines = [
    ...[...needed].map((chunk) => `${SCRIPT} href="/${chunk.fileName}">`),
    ...stylesOf(needed).map((name) => `<link rel="stylesheet" crossorigin href="/${name}">`),
    ...[...later].map((chunk) => `${SCRIPT}${NO_PHONE} href="/${chunk.fileName}">`),
    ...stylesOf(later).map((name) => `<link rel="preload" as="style" crossorigin${NO_PHONE} href="/${name}">`),
  ];
  const known = new Set(addresses(page));
  return lines.filter((line) => addresses(line).some((address) => !known.has(address) && known.add(address))).join("\n    ");
}

function addresses(html: string): string[] {
  return [...html.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address = ""]) => address);
}

function stylesOf(chunks: Iterable<Rolldown.OutputChunk>): string[] {
  return [...new Set([...chunks].flatMap((chunk) => [...(chunk.viteMetadata?.importedCss ?? [])]))];
}

export function pages(root: string): Plugin {
  return {
    name: "mendflow-pages",
    apply: "build",
    buildStart() {
      this.emitFile({ type: "chunk", id: join(root, "src/boot.ts"), name: "boot" });
    },
    writeBundle(options, bundle) {
      const folder = options.dir ?? "";
      const chunks = Object.values(bundle).filter((each) => each.type === "chunk");
      const boot = `<script src="/${chunkOf(chunks, "/src/boot.ts").fileName}"></script>`;
      const built = readFileSync(join(folder, "index.html"), "utf8");
      const withBoot = built.replace('<link rel="icon"', `${boot}\n    <link rel="icon"`);
      const plain = withBoot.replaceAll('rel="modulepreload" crossorigin', 'rel="modulepreload" crossorigin fetchpriority="low"').replace('<script type="module" crossorigin', '<script type="module" crossorigin fetchpriority="low"');
      if (withBoot === built) throw new Error("index.html has no icon to put the first script before");
      const router = readFileSync(join(root, "src/app/router.tsx"), "utf8");
      const files = new Map<string, string>();
      for (const [, path = "", page = ""] of router.matchAll(ROUTE)) {
        const shown = path === "/sign-in" ? "" : firstPaint(path);
        const html = plain.replace("</head>", `  ${links(chunks, `/src/pages/${page}/page.tsx`, ALSO[path], plain)}\n  </head>`).replace('<div id="root"></div>', `<div id="root">${shown}</div>`);
        files.set(`pages${path === "/" ? "/index" : path.replaceAll(/\$\w+/g, "_")}.html`, html);
      }
      if (!files.size) throw new Error("router.tsx has no pages");
      const compress = (name: string, content: Buffer) => {
        if (!COMPRESSED.test(name) || content.length < COMPRESSED_FROM) return;
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: content.length > LARGE ? 9 : 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length } }));
      };
      for (const name of Object.keys(bundle)) if (name !== "index.html") compress(name, readFileSync(join(folder, name)));
      files.set("index.html", plain); // the last one: a server that runs reads everything anew when it is another
      for (const [name, html] of files) {
        mkdirSync(dirname(join(folder, name)), { recursive: true });
        compress(name, Buffer.from(html));
        writeFileSync(join(folder, name), html);
      }
    },
  };
}
