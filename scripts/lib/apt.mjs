// Installs Debian packages, where this user may.
import { fail, run, which } from "./run.mjs";

/** Installs Debian packages; `why` completes the sentence that a user reads when it is not possible. */
export function aptInstall(packages, why) {
	const byHand = `install ${packages.join(" and ")} and run this again`;
	if (!which("apt-get")) fail(`${why}, and this is not a Debian system: ${byHand}.`);
	const isRoot = process.getuid?.() === 0;
	if (!isRoot && !which("sudo")) fail(`${why}, and you are neither root nor have sudo: ${byHand}.`);
	const prefix = isRoot ? [] : ["sudo"];
	const apt = (...args) => {
		const [command, ...rest] = [...prefix, "apt-get", ...args];
		run(command, rest, { env: { DEBIAN_FRONTEND: "noninteractive" } });
	};
	apt("update", "-q");
	apt("install", "-q", "-y", "--no-install-recommends", ...packages);
}
