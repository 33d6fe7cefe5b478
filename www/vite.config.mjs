// Builds the demo page. `sterna` is the package as published (pkg/), so that the page uses what users get.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { VitePWA } from "vite-plugin-pwa";
import { viteStaticCopy } from "vite-plugin-static-copy";

const fromRepo = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

const isolation = {
	"Cross-Origin-Opener-Policy": "same-origin",
	"Cross-Origin-Embedder-Policy": "require-corp",
};

const pwa = VitePWA({
	strategies: "injectManifest",
	srcDir: "src/offline",
	filename: "service-worker.ts",
	// Those that the page shows are among the files below.
	includeManifestIcons: false,
	// The page does it itself: it may have to load itself again.
	injectRegister: false,
	injectManifest: {
		globPatterns: ["**/*.{html,js,css,svg,png,wasm}"],
		// The embedded model is kept by the engine, as all models are.
		globIgnores: ["models/**"],
		maximumFileSizeToCacheInBytes: 32 << 20,
	},
	manifest: {
		name: "Sterna",
		short_name: "Sterna",
		description: "Chat with a ternary language model that runs entirely inside this page.",
		id: "./",
		start_url: "./",
		scope: "./",
		display: "standalone",
		background_color: "#f7f9f9",
		theme_color: "#0c6a80",
		icons: [
			{ src: "tern.svg", sizes: "any", type: "image/svg+xml" },
			{ src: "icon-192.png", sizes: "192x192", type: "image/png" },
			{ src: "icon-512.png", sizes: "512x512", type: "image/png" },
			{ src: "icon-maskable-512.png", sizes: "512x512", type: "image/png", purpose: "maskable" },
		],
	},
});

export default defineConfig({
	root: fromRepo("www"),
	base: "./",
	resolve: {
		alias: [
			{ find: /^sterna$/, replacement: fromRepo("pkg/index.js") },
			{ find: /^sterna\/isolation$/, replacement: fromRepo("pkg/isolation.js") },
		],
	},
	plugins: [
		viteStaticCopy({ targets: [{ src: `${fromRepo("models/bit-7m")}/*`, dest: "models/bit-7m" }] }),
		pwa,
	],
	worker: { format: "es" },
	build: { target: "es2022", outDir: "dist", emptyOutDir: true },
	server: { headers: isolation, fs: { allow: [fromRepo("")] } },
	preview: { headers: isolation },
});
