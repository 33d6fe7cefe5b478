// The script of a thread in Node.

import { parentPort, workerData } from "node:worker_threads";
import { runThread } from "./threads/thread.js";

runThread(workerData, (report) => parentPort?.postMessage(report));
