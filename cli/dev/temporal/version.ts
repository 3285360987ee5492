import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The Temporal CLI to download or build when none is found; `tools/temporal/go.mod` names the same. */
export const TEMPORAL_CLI_VERSION = '1.9.1'

/**
 * Oldest server that Crucible runs on: 1.32 has per-workflow time skipping, which the tests need, and standalone activities.
 * The CLI has carried it since 1.9.0.
 */
export const MIN_SERVER_VERSION = '1.32.0'

/** A cold start reads 150 MB from disk. */
const VERSION_TIMEOUT_MS = 20_000

/** Versions of a CLI and of the server in it. */
export interface TemporalVersion {
  version: string
  serverVersion: string
}

/** Parses the output of `temporal --version`; `undefined` for other output. */
function parseTemporalVersion(text: string): TemporalVersion | undefined {
  const match = /^temporal version (\S+) \(Server (\d+\.\d+\.\d+[^,\s)]*)/m.exec(text)
  return match === null ? undefined : { version: match[1]!, serverVersion: match[2]! }
}

/** Major, minor and patch of a version, without suffixes (`-rc.1`). */
export function versionNumbers(version: string): [major: number, minor: number, patch: number] {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  return [major, minor, patch]
}

export function isServerNewEnough(serverVersion: string): boolean {
  const [have, need] = [versionNumbers(serverVersion), versionNumbers(MIN_SERVER_VERSION)]
  const differs = have.findIndex((number, index) => number !== need[index])
  return differs === -1 || have[differs]! > need[differs]!
}

/** Asks an executable for its version. Throws if it cannot run or gives another answer. */
export async function askVersion(path: string): Promise<TemporalVersion> {
  const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: VERSION_TIMEOUT_MS })
  const version = parseTemporalVersion(stdout)
  if (version === undefined) {
    throw new Error(`it is not the Temporal CLI: --version printed "${stdout.trim().slice(0, 80)}"`)
  }
  return version
}
