// Builds the demo page. `sterna` is the package as published (pkg/), so that the page uses what users get.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { viteStaticCopy } from "vite-plugin-static-copy";

const fromRepo = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const isolation = {
	"Cross-Origin-Opener-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig({
	root: fromRepo("www"),
	base: "./",
	resolve: { alias: { sterna: fromRepo("pkg") } },
	plugins: [viteStaticCopy({ targets: [{ src: `${fromRepo("models/bit-7m")}/*`, dest: "models/bit-7m" }] })],
	worker: { format: "es" },
	build: { target: "es2022", outDir: "dist", emptyOutDir: true },
	server: { headers: isolation, fs: { allow: [fromRepo("")] } },
	preview: { headers: isolation },
});
