import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TemporalExecutable } from '../../cli/dev/temporal/resolve'
import { MINUTE_MS, SECOND_MS } from '../../core/time/time'
import { readRuns } from '../../storage/schedules'
import { crucible, untilTrue } from '../chaos/commands'
import { clear, setStage, startAll, stopAll, type Product, type Stage } from '../chaos/stage'
import { withFolder } from '../kit/folder'
import type { Report } from '../kit/harness'

/** A part of the deployment that is away from `beforeMs` before the date, for `forMs`. */
export interface Outage {
  beforeMs: number
  forMs: number
  takeAway: (stage: Stage) => Promise<unknown> | void
  giveBack: (stage: Stage) => Promise<unknown> | void
}

const moved = ({ home }: Stage): [string, string] => [join(home, 'store'), join(home, 'store-away')]

export const OUTAGES: Readonly<Record<string, Outage>> = {
  'the orchestrator is killed before the date': {
    beforeMs: 5 * SECOND_MS,
    forMs: 25 * SECOND_MS,
    takeAway: ({ parts }) => parts.orchestrator.kill(),
    giveBack: ({ parts }) => parts.orchestrator.start(),
  },
  'the orchestrator is killed at the date': {
    beforeMs: -500,
    forMs: 10 * SECOND_MS,
    takeAway: ({ parts }) => parts.orchestrator.kill(),
    giveBack: ({ parts }) => parts.orchestrator.start(),
  },
  'the backend worker is killed at the date': {
    beforeMs: -2 * SECOND_MS,
    forMs: 20 * SECOND_MS,
    takeAway: ({ parts }) => parts.backendWorker.kill(),
    giveBack: ({ parts }) => parts.backendWorker.start(),
  },
  'the server is killed for 75 s': {
    beforeMs: 10 * SECOND_MS,
    forMs: 75 * SECOND_MS,
    takeAway: ({ parts }) => parts.server.kill(),
    giveBack: ({ parts }) => parts.server.start(),
  },
  'the store is away for 25 s': {
    beforeMs: 10 * SECOND_MS,
    forMs: 25 * SECOND_MS,
    takeAway: (stage) => renameSync(...moved(stage)),
    giveBack: (stage) => {
      const [store, away] = moved(stage)
      renameSync(away, store)
    },
  },
}

const NAME = 'ranker'
const TRAINING = `import os
with open(os.path.join(os.environ["CRUCIBLE_CHECKPOINT_DIR"], "model.bin"), "wb") as file:
    file.write(b"model")
print("step 1/1 loss 0.1", flush=True)
`
/** From the date, or the end of the outage, to the end of the run. */
const ENDED_LIMIT_MS = 90 * SECOND_MS
/** A second run of the date would begin within this time. */
const AGAIN_MS = 15 * SECOND_MS

/** Lets a schedule meet an outage at its date, and counts its runs. */
export async function runDates(
  { beforeMs, forMs, takeAway, giveBack }: Outage,
  { product, executable, isKept }: { product: Product; executable: TemporalExecutable; isKept: boolean },
): Promise<Report> {
  return withFolder('dates', async (folder) => {
    const stage = await setStage({ product, executable, seed: 0, isLeaseShort: false, disks: [] })
    const breaches: string[] = []
    const story: string[] = []
    try {
      await startAll(stage)
      const atMs = Math.ceil((Date.now() + 30 * SECOND_MS) / MINUTE_MS) * MINUTE_MS
      await create(stage, { product, folder, atMs })
      await sleep(atMs - beforeMs - Date.now())
      await takeAway(stage)
      story.push(`away at ${new Date().toISOString()}, the date is ${new Date(atMs).toISOString()}`)
      await sleep(forMs)
      await giveBack(stage)
      let states: (string | undefined)[] = []
      const look = async (): Promise<void> => {
        const runs = await readRuns(stage.context.store, { schedule: NAME, count: 9 })
        states = runs.map(({ result }) => result?.state)
      }
      const looking = setInterval(() => void look().catch(() => undefined), SECOND_MS)
      await untilTrue(() => states[0] !== undefined, 'the run is over', ENDED_LIMIT_MS).catch(
        (error: unknown) => breaches.push(String(error)),
      )
      await sleep(AGAIN_MS)
      clearInterval(looking)
      story.push(`runs: ${states.join(', ')}`)
      if (states.join() !== 'trained') breaches.push(`the date has the runs: ${states.join(', ') || 'none'}`)
    } catch (error) {
      breaches.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
    }
    const left = await stopAll(stage)
    breaches.push(...stage.failures, ...left.map((process) => `a process is left: ${process}`))
    clear(stage, { isKept: isKept || breaches.length > 0 })
    if (breaches.length > 0) story.unshift(`kept: ${stage.home}`)
    return { state: breaches.length === 0 ? 'held' : 'gave way', breaches, story }
  })
}

/** A schedule whose only date this month is at this minute. */
async function create(
  stage: Stage,
  { product, folder, atMs }: { product: Product; folder: string; atMs: number },
): Promise<void> {
  const code = join(folder, NAME)
  mkdirSync(code)
  writeFileSync(join(code, 'train.py'), TRAINING)
  const date = new Date(atMs)
  const time = date.toISOString().slice(11, 16)
  const lines = [
    `name: ${NAME}`,
    'every: month',
    `day: ${date.getUTCDate()}`,
    `time: "${time}"`,
    'zone: UTC',
    'lead: 0d',
    'check_before: 1s',
    'job:',
    '  run: python3 train.py',
    '  resources:',
    '    cpus: 1',
    '  checkpoint: {}',
    '',
  ]
  writeFileSync(join(code, 'retrain.yaml'), lines.join('\n'))
  await crucible({ stage, product }, ['schedule', 'create', join(code, 'retrain.yaml'), '--json'])
}
