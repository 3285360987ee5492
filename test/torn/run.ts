import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Manifest, Restores } from '../../core/job/checkpoint'
import { thinOutCheckpoints } from '../../storage/retention'
import type { ObjectStore } from '../../storage/store'

/** A checkpoint that was resumed from and should not have been, or was not and should have been. */
interface BadResume {
  seed: number
  words: string
}

export interface Outcome {
  bad: BadResume[]
  /** How often each thing happened: a case in which nothing goes wrong proves nothing. */
  counts: Readonly<Record<string, number>>
}

/** What the control plane is about to look at: a job's keys, and whom it thins out for. */
interface Question {
  keys: string[]
  /** Texts by key, in the order in which they were put. */
  manifests: Record<string, string>
  attempt: number
  restored: { id: string } | null
  keep: number
}

type Line = { thinOut: Question } | { bad: BadResume } | { done: Record<string, number> }

const JOB = 'job-torn'
/** Lives through the cases with the seeds `first` to `first + count - 1`, in one process: the runner's code in Python, the control plane's here. */
export async function runCases(first: number, count: number): Promise<Outcome> {
  const python = process.env['CRUCIBLE_TEST_PYTHON'] ?? 'python3'
  const program = join(__dirname, 'python', 'main.py')
  const child = spawn(python, ['-B', program, String(first), String(count)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const bad: BadResume[] = []
  for await (const text of createInterface({ input: child.stdout })) {
    const line = JSON.parse(text) as Line
    if ('bad' in line) bad.push(line.bad)
    else if ('done' in line) return { bad, counts: line.done }
    else child.stdin.write(`${JSON.stringify(await keysToGo(line.thinOut))}\n`)
  }
  throw new Error(`the cases from ${first} on did not come to their end`)
}

/** What a watch would delete now, in its order. */
async function keysToGo({ keys, manifests, attempt, restored, keep }: Question): Promise<string[]> {
  const gone: string[] = []
  await thinOutCheckpoints(snapshot({ keys, manifests }, gone), JOB, {
    keep,
    protectedIds: restored === null ? [] : [restored.id],
    isOver: (other) => other < attempt,
    // The parts of these files are smaller than the schema has them.
    parse: {
      manifest: (text) => JSON.parse(text) as Manifest,
      restores: (text) => JSON.parse(text) as Restores,
    },
  })
  return gone
}

/** The store as it was when the question was asked; what is deleted goes from the real one one by one, while others work. */
function snapshot({ keys, manifests }: Pick<Question, 'keys' | 'manifests'>, gone: string[]): ObjectStore {
  const order = Object.keys(manifests)
  const stored = (key: string) => ({ key, sizeBytes: 1, modifiedAtMs: Math.max(0, order.indexOf(key)) })
  const store: Pick<ObjectStore, 'get' | 'list' | 'listFolders' | 'delete'> = {
    get: async (key) => (manifests[key] === undefined ? undefined : Buffer.from(manifests[key])),
    async *list(prefix) {
      yield* keys.filter((key) => key.startsWith(prefix)).map(stored)
    },
    listFolders: async (prefix) => {
      const names = keys.filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length))
      return [...new Set(names.map((name) => name.split('/')[0]!))].sort()
    },
    delete: async (key) => void gone.push(key),
  }
  return store as ObjectStore
}
