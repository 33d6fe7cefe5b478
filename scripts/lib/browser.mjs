// Finds the browser and its WebDriver; `CHROME` and `CHROMEDRIVER` name other ones.
import { which } from "./run.mjs";

/** The path of Chromium or Chrome, or `undefined`. */
export function findChromium() {
	return process.env.CHROME ?? which("chromium") ?? which("chromium-browser") ?? which("google-chrome");
}

/** The path of chromedriver, or `undefined`. */
export function findChromedriver() {
	return process.env.CHROMEDRIVER ?? which("chromedriver");
}
