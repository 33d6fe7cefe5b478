// The script of the module worker that runs the engine.

import { browserPlatform } from "./browser-platform.js";
import { localHost } from "./local-host.js";
import { type Port, serve } from "./worker/server.js";

serve(globalThis as unknown as Port, localHost(browserPlatform()));
