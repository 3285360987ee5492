/**
 * Records the golden histories: `npm run record-histories [-- NAME...]` plays the scenarios named, or those without a history
 * yet, on a real server. `npm run record-histories -- --lived` runs the end-to-end tests of workflows, and records the histories
 * in which something follows something else for the first time. A history that is there stays: it stands for the jobs that run while a new version is installed. The
 * documents that one job leaves in its store are kept too. What replays show is written anew for all: it may change any day.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { historyToJSON } from '@temporalio/common/lib/proto-utils'
import setUp from '../support/global-setup'
import tearDown from '../support/global-teardown'
import { serverOfShortHistories } from '../support/own-server'
import { connectTo, quietWorkers } from '../support/temporal'
import type { ObjectStore } from '../../storage/store'
import { Deployment } from '../workflows/harness'
import { replayed } from './commands'
import { historyFiles, pathOf, readHistory, shownPathOf, textOf } from './histories'
import { KEEP_VARIABLE, recordLived } from './lived'
import type { Scenario } from './scenario'
import { SCENARIOS } from './scenarios'

/** Most of a scenario is waiting. */
const SIDE_BY_SIDE = 6
const ROOT = join(__dirname, '..', '..')
const STORE = join(__dirname, 'store')
/** Its job leaves a document of most kinds. */
const STORE_OF = 'job.interrupted-then-resumed'

/** Each document as a file whose path is its key. */
async function keepDocuments(store: ObjectStore): Promise<void> {
  for await (const { key } of store.list('jobs/')) {
    if (!key.endsWith('.json')) continue
    const path = join(STORE, key)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, (await store.get(key))!)
  }
}

const names = process.argv.slice(1).filter((argument) => SCENARIOS.some(({ name }) => name === argument))
const isStoreMissing = !existsSync(STORE)
const lacksHistory = (name: string): boolean =>
  names.length > 0 ? names.includes(name) : !existsSync(pathOf(name))

async function recordTests(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'crucible-lived-'))
  const jest = join(ROOT, 'node_modules', '.bin', 'jest')
  const args = ['--selectProjects', 'temporal', '--testPathPatterns', 'test/workflows/']
  spawnSync(jest, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, [KEEP_VARIABLE]: folder } })
  await recordLived(folder)
  await rm(folder, { recursive: true })
}

async function main(): Promise<void> {
  if (process.argv.includes('--lived')) await recordTests()
  const wanted = SCENARIOS.filter(({ name }) => lacksHistory(name) || (isStoreMissing && name === STORE_OF))
  quietWorkers()
  if (wanted.length > 0) await recordAll(wanted)
  await writeShown()
}

async function recordAll(scenarios: readonly Scenario[]): Promise<void> {
  await setUp()
  try {
    const remaining = [...scenarios]
    const recordNext = async (): Promise<void> => {
      for (let scenario = remaining.shift(); scenario !== undefined; scenario = remaining.shift()) {
        process.stdout.write(`${scenario.name}\n`)
        await record(scenario)
      }
    }
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, recordNext))
  } finally {
    await tearDown()
  }
}

async function writeShown(): Promise<void> {
  for (const file of historyFiles()) {
    const { shown } = await replayed(readHistory(file))
    await writeFile(shownPathOf(file), shown.map((line) => `${line}\n`).join(''))
  }
}

async function record(scenario: Scenario): Promise<void> {
  const { name, wishes, play, suggestsFreshHistoryAfterEvents: eventsMax } = scenario
  const server = eventsMax === undefined ? { at: await connectTo() } : await serverOfShortHistories(eventsMax)
  const deployment = await Deployment.start(server.at, wishes)
  try {
    const played = await play(deployment)
    const run = typeof played === 'string' ? { workflowId: played, runId: undefined } : played
    const history = await deployment.client.workflow.getHandle(run.workflowId, run.runId).fetchHistory()
    // Stack traces name the place where they were recorded.
    const text = historyToJSON(history).replaceAll(ROOT, '')
    if (lacksHistory(name)) await writeFile(pathOf(name), textOf(JSON.parse(text) as { events: unknown[] }))
    if (isStoreMissing && name === STORE_OF) await keepDocuments(deployment.store)
  } finally {
    await deployment.close()
    await ('stop' in server ? server.stop() : server.at.close())
  }
}

void main()
