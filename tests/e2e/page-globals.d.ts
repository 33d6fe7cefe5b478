/** What the test pages put on their window: the package, as they import it. */
interface Window {
	sterna: typeof import("../../pkg-template/src/index.js");
	model?: import("../../pkg-template/src/index.js").Model;
}
