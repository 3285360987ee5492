import { setTimeout as sleep } from 'node:timers/promises'
import { WorkflowFailedError } from '@temporalio/client'
import { patient } from '../support/patience'

const ASKED_AGAIN_MS = 500

/** What came of one job in one world. */
export interface Outcome {
  state: string
  attempts: number
  /** Empty when every invariant held. */
  breaches: string[]
  /** What the world was, and what was done in it. */
  story: string[]
}

/** Prints a line, and the story of what broke. */
export function printOutcome(title: string, outcome: Outcome, isStoryWanted = false): void {
  const { state, attempts, breaches, story } = outcome
  const isBroken = breaches.length > 0
  process.stdout.write(`${title}: ${state}, ${attempts} attempts${isBroken ? ', BROKEN' : ''}\n`)
  if (!isBroken && !isStoryWanted) return
  for (const line of [...breaches.map((breach) => `! ${breach}`), ...story])
    process.stdout.write(`    ${line}\n`)
}

/** Prints how they ended; the exit code tells whether any broke. */
export function summarise(outcomes: readonly Outcome[]): void {
  const ends = new Map<string, number>()
  for (const { state } of outcomes) ends.set(state, (ends.get(state) ?? 0) + 1)
  const broken = outcomes.filter(({ breaches }) => breaches.length > 0)
  for (const [state, count] of [...ends].sort(([, a], [, b]) => b - a))
    process.stdout.write(`${count} x ${state}\n`)
  process.stdout.write(`${outcomes.length} worlds, ${broken.length} broken\n`)
  process.exitCode = broken.length === 0 ? 0 : 1
}

/** Whether a job is over, well or not, within a time, which is for an idle machine. A server that is too busy to answer says nothing about the job. */
export async function isOverWithin(job: { result(): Promise<unknown> }, limitMs: number): Promise<boolean> {
  const patience = new AbortController()
  const over = async (): Promise<boolean> => {
    while (!patience.signal.aborted) {
      try {
        await job.result()
        return true
      } catch (error) {
        if (error instanceof WorkflowFailedError) return true
        await sleep(ASKED_AGAIN_MS)
      }
    }
    return false
  }
  const isOver = await Promise.race([over(), sleep(patient(limitMs), false, { signal: patience.signal })])
  patience.abort()
  return isOver
}
