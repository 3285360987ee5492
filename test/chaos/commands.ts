/** What proofs need that play whole jobs with commands on a stage. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { JobResult } from '../../core/messages'
import { patient } from '../support/patience'
import { Sight } from './sight'
import type { Product, Stage } from './stage'

const COMMAND_LIMIT_MS = patient(30_000)
const LOOK_EVERY_MS = 50

/** Runs a command of the built product, with more variables; returns its output. Rejects if it fails, or does not end. */
export async function crucible(
  { stage, product }: { stage: Stage; product: Product },
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [product.path('dist', 'cli', 'main.js'), ...args],
    { env: { ...stage.settings, ...variables }, timeout: COMMAND_LIMIT_MS, maxBuffer: 2 ** 30 },
  )
  return stdout
}

export function sightOf({ home, seam }: Stage, jobId: string): Sight {
  return new Sight(jobId, { store: join(home, 'store'), journal: join(home, 'journals', jobId), seam })
}

/** The end of a job on record. */
export function resultOf(sight: Sight): JobResult | undefined {
  const [finished] = sight.records('finished')
  return (finished?.data as { result: JobResult } | undefined)?.result
}

/** Rejects with the words if something does not become true within the time, which is for an idle machine. */
export async function untilTrue(isNow: () => boolean, what: string, limitMs: number): Promise<void> {
  const endMs = performance.now() + patient(limitMs)
  while (!isNow()) {
    if (performance.now() > endMs) throw new Error(`not within ${patient(limitMs) / 1_000} s: ${what}`)
    await sleep(LOOK_EVERY_MS)
  }
}
