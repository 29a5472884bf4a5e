import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

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

export default defineConfig({
  plugins: [react()],
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
  },
  test: { environment: "node", include: ["test/**/*.test.{ts,tsx}"] },
});
