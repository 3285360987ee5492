/** Histories of the workflows that end-to-end tests live through, from which `npm run record-histories -- --lived` chooses. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '@temporalio/client'
import { historyToJSON } from '@temporalio/common/lib/proto-utils'
import { changesOf, replayed, type History, type HistoryEvent } from './commands'
import { addLived, historyFiles, readHistory } from './histories'
import { pairsIn } from './pairs'

/** Stack traces name the place where they were recorded. */
const ROOT = join(__dirname, '..', '..')
/** The folder that takes them; missing in an ordinary run of the tests. */
export const KEEP_VARIABLE = 'CRUCIBLE_KEEP_HISTORIES'

/** Keeps what has happened to the workflows of a namespace. */
export async function keepHistories(client: Client): Promise<void> {
  const folder = process.env[KEEP_VARIABLE]
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  for await (const { workflowId, runId, type } of client.workflow.list()) {
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory()
    writeFileSync(join(folder, `${type}.${runId}.json`), historyToJSON(history).replaceAll(ROOT, ''))
  }
}

/** Records those that bring pairs of events which no golden history has; the most new pairs for their length come first. */
export async function recordLived(folder: string): Promise<void> {
  const known = new Set(
    historyFiles().flatMap((file) => pairsIn(workflowOf(file), readHistory<HistoryEvent>(file).events)),
  )
  let candidates = readdirSync(folder).map((file) => {
    const { events } = JSON.parse(readFileSync(join(folder, file), 'utf8')) as { events: HistoryEvent[] }
    return { workflow: workflowOf(file), events, pairs: pairsIn(workflowOf(file), events) }
  })
  const gainOf = ({ pairs, events }: (typeof candidates)[number]): number =>
    pairs.filter((pair) => !known.has(pair)).length / (events.length + EVENTS_OF_ANY)
  for (;;) {
    candidates = candidates.filter((each) => gainOf(each) > 0).sort((a, b) => gainOf(b) - gainOf(a))
    const best = candidates.shift()
    if (best === undefined) return
    if (!(await isRepeatable(best))) continue
    process.stdout.write(`${addLived(best.workflow, best.events)}\n`)
    best.pairs.forEach((pair) => known.add(pair))
  }
}

/** False where a worker was replaced in the middle of a task: its replay has other instants. */
async function isRepeatable(history: History): Promise<boolean> {
  const { commands, error } = await replayed(history)
  return error === undefined && changesOf(history, commands).length === 0
}

/** A short history costs its file, too. */
const EVENTS_OF_ANY = 20

const workflowOf = (file: string): string => file.split('.')[0]!
