import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { pages } from "./build/pages";

const server = process.env["MENDFLOW_SERVER"] ?? "http://127.0.0.1:8642";
const token = process.env["MENDFLOW_TOKEN"];

/** The development server hands the API through, so that a page here sees a server that runs elsewhere. */
const proxy = {
  "/api": {
    target: server,
    changeOrigin: true,
    headers: { ...(token ? { Authorization: `Bearer ${token}` } : {}), Origin: server },
  },
};

/** What every page needs, as one file: a browser asks for few files sooner than for many. Nothing of it may need a page. */
const LIBRARIES = /node_modules\/(react|react-dom|scheduler|openapi-fetch|@tanstack\/(history|query-core|react-query|react-router|react-store|router-core|store))\//;
const PARTS = /src\/api\/|src\/app\/(keys|navigation|query-client|screen|search-params|theme)\.tsx?$|src\/components\/(action-buttons|actions|acts|case-acts|case-progress|commands|copy-button|count-link|dialog|drawer|explained-words|field|format|icon|icon-paths|menu|page|sparkline|state-badge|states-of-page|tabs|task-link|time|toasts|variable-text|why|word)\.tsx?$/;
/** What pages with a list need besides, as one file too. */
const LISTS = /node_modules\/@tanstack\/(react-table|table-core|react-virtual|virtual-core)\/|src\/components\/(data-table|json-tree|line-field|row-reason|where-field)\.tsx?$/;

export default defineConfig({
  plugins: [react(), pages(fileURLToPath(new URL(".", import.meta.url)))],
  base: "/",
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: { proxy },
  worker: { format: "es" },
  build: {
    target: "es2022",
    outDir: "../src/mendflow/server/web_files",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    sourcemap: false,
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: "base", test: (id) => LIBRARIES.test(id) || PARTS.test(id) }, { name: "lists", test: LISTS }] },
      },
    },
  },
  test: { environment: "node", include: ["test/**/*.test.{ts,tsx}"] },
});
