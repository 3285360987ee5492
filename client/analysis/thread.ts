/** Analyzes programs in a thread with limits: a script of a stranger may be made to keep the analysis busy or to fill the memory. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Analysis, Suggestion } from '../../packages/analyzer/src/analyze'
import { couldNotTell } from '../../packages/analyzer/src/report'

export interface AnalysisWork {
  root: string
  /** Command to analyze; missing for a folder whose program must be found. */
  command: string | undefined
  isSuggestionWanted: boolean
}

export interface AnalysisResult {
  analysis: Analysis
  suggestion?: Suggestion
}

/** The answer of the thread: a result, or the reason for its absence. */
export type AnalysisAnswer = AnalysisResult | { problem: string }

/** Analyzes a command in the folder in which it runs. */
export async function analyzeCommand(root: string, command: string): Promise<Analysis> {
  return (await inWorker({ root, command, isSuggestionWanted: false })).analysis
}

/** A large project takes a second or two; on a busy machine, many times that. */
const LIMIT_MS = 60_000
const MEMORY_MIB = 2_048

interface Limits {
  limitMs: number
  memoryMiB: number
}

/**
 * Returns the result of the thread. An analysis that reaches a limit, or that fails, says so: its kind is `unreadable`, with the reason.
 */
export async function inWorker(
  work: AnalysisWork,
  { limitMs, memoryMiB }: Limits = { limitMs: LIMIT_MS, memoryMiB: MEMORY_MIB },
): Promise<AnalysisResult> {
  const worker = new Worker(program(), {
    workerData: work,
    resourceLimits: { maxOldGenerationSizeMb: memoryMiB },
  })
  let timer: NodeJS.Timeout | undefined
  const answer = await new Promise<AnalysisAnswer>((resolve) => {
    const late = `could not be analyzed within ${limitMs / 1_000} seconds`
    timer = setTimeout(() => resolve({ problem: late }), limitMs)
    worker.once('message', resolve)
    worker.once('error', (error) => resolve({ problem: problemOf(error, memoryMiB) }))
    worker.once('exit', () => resolve({ problem: 'could not be analyzed: its thread ended' }))
  })
  clearTimeout(timer)
  await worker.terminate()
  return 'problem' in answer ? { analysis: couldNotTell(work.command ?? '.', answer.problem) } : answer
}

function problemOf(error: NodeJS.ErrnoException, memoryMiB: number): string {
  return error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? `could not be analyzed within ${memoryMiB} MiB of memory`
    : `could not be analyzed: ${error.message}`
}

/** The program of the thread, as it was built; sources run with the last build. */
function program(): string {
  const built = join(__dirname, 'worker.js')
  return existsSync(built) ? built : join(__dirname, '..', '..', 'dist', 'client', 'analysis', 'worker.js')
}
