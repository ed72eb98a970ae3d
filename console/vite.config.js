import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { embed } from "./embed.js";
import { licences } from "./licences.js";

// `npm run dev` serves the sources, and passes the API on to a broker on this machine.
const broker = process.env.QUELEA_HTTP ?? "http://127.0.0.1:15672";
const proxied = { target: broker, changeOrigin: true, headers: { origin: broker } };

export default defineConfig({
  base: "/",
  plugins: [svelte({ configFile: false, compilerOptions: { runes: true } }), licences(), embed()],
  build: {
    target: ["chrome123", "firefox120", "safari17.5"],
    // The Content-Security-Policy allows no data: and no inline code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // How long plugins take is nobody's question here.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: { proxy: { "/api": proxied, "/metrics": proxied } },
});
