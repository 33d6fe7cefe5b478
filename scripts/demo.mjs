// Serves the chat page on this machine, after building whatever it lacks.
//
//   npm run demo               http://localhost:8080, or the next free port
//   PORT=3000 npm run demo     exactly that port
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildPackage } from "./build.mjs";
import { buildPage } from "./build-page.mjs";
import { inRoot } from "./lib/paths.mjs";
import { fail, step } from "./lib/run.mjs";
import { setup } from "./setup.mjs";

/** What pkg/ is made from. */
const PACKAGE_SOURCES = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "src", "pkg-template"];

function packageIsCurrent() {
	const product = inRoot("pkg", "package.json");
	if (!existsSync(product) || !existsSync(inRoot("pkg", "index.js"))) return false;
	const built = statSync(product).mtimeMs;
	return PACKAGE_SOURCES.every((source) => newest(inRoot(source)) <= built);
}

/** When the file, or the newest file of the folder, was changed. */
function newest(path) {
	const { mtimeMs } = statSync(path);
	if (!statSync(path).isDirectory()) return mtimeMs;
	return Math.max(mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

function wantedPort() {
	const text = process.env.PORT;
	if (!text) return { port: 8080 };
	const port = Number(text);
	if (!Number.isInteger(port) || port < 0 || port > 65535)
		fail(`PORT=${text} is not a port number (0 to 65535).`);
	return { port, exact: true };
}

const port = wantedPort();
setup({ buildOnly: true });
if (!packageIsCurrent()) await buildPackage();
step("Page");
const folder = await buildPage();

const { serve } = await import("./serve.mjs");
const { url, close } = await serve(folder, port).catch(({ code, message }) => {
	fail(
		code === "EADDRINUSE"
			? `Port ${port.port} is in use: name another one, as in PORT=3000 npm run demo.`
			: message,
	);
});
console.log(`\nSterna is at ${url}\nCtrl-C ends it.`);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => close().then(() => process.exit(0)));
