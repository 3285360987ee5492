/** Reads texts with one reader: a line of base64 in, a line of JSON out with the processor time and what went wrong. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { createHttpClient, HttpError } from '../../backends/http'
import { parseJobFile } from '../../client/job/file'
import { leftOutWarnings } from '../../client/job/left-out'
import { hiddenFailures, strictnessOf } from '../../client/job/hidden-failures'
import { calledFiles } from '../../client/job/scripts'
import { shellWarnings } from '../../client/job/shell-warnings'
import { isCoded } from '../../core/errors'
import { parseGlob } from '../../core/glob'
import type { JobSpec } from '../../core/job/job'
import { parseBeat, parseManifest } from '../../intake/documents'
import { analyze, type PythonParser } from '../../packages/analyzer/src/analyze'
import { PayloadSeal, type SealedPayload } from '../../storage/payload-seal'
import { parser, project } from '../analyze/corpus'
import { SOURCES } from './inputs'

type Read = (text: string) => unknown

/** A reader that announces one kind of error. */
const refusing =
  (code: 'document' | 'seal', read: Read): Read =>
  async (text) => {
    try {
      await read(text)
    } catch (error) {
      if (!isCoded(error, code)) throw error
    }
  }

function job(run: string): JobSpec {
  return { run, image: 'image', checkpoint: {}, inputs: [], outputs: [] } as unknown as JobSpec
}

function globs(text: string): void {
  const glob = parseGlob(text)
  if ('message' in glob) return
  glob.matches('a'.repeat(255))
  glob.matches(Array(200).fill('a').join('/'))
}

async function shell(grammar: PythonParser, text: string): Promise<void> {
  shellWarnings(job(text))
  calledFiles(text)
  hiddenFailures(text, strictnessOf('sh'))
  await leftOutWarnings(job(text), { root: '/nonexistent', entries: [] })
  const files = project({ 'run.sh': text, 'train.py': 'import torch\n' })
  analyze(grammar, { files, command: 'bash run.sh' })
  analyze(grammar, { files, command: text })
}

function payloadOf(text: string): SealedPayload {
  const bytes = (value: unknown): Uint8Array => Buffer.from(String(value))
  try {
    const { metadata, data } = JSON.parse(text) as { metadata?: Record<string, unknown>; data?: unknown }
    const fields = Object.entries(metadata ?? {}).map(([name, value]) => [name, bytes(value)] as const)
    return { metadata: Object.fromEntries(fields), data: bytes(data) }
  } catch {
    return { metadata: { 'crucible-seal': bytes(text) }, data: bytes(text) }
  }
}

function signatures(): Read {
  const seal = new PayloadSeal({ key: () => Promise.resolve(Buffer.alloc(32)), onRefused: 'throw' })
  return refusing('seal', (text) =>
    seal.decode([payloadOf(text)], { type: 'workflow', namespace: 'default', workflowId: text }),
  )
}

async function answers(): Promise<Read> {
  let [status, body] = [200, '']
  const server = createServer((_, response) => response.writeHead(status).end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  const { port } = server.address() as AddressInfo
  const options = { name: 'Provider', userAgent: 'crucible', headers: () => ({}) }
  const client = createHttpClient({ ...options, baseUrl: `http://127.0.0.1:${port}` })
  const { signal } = new AbortController()
  const answer = z.object({ data: z.object({ instances: z.array(z.object({ id: z.string() })) }) })
  return async (text) => {
    for (const each of [200, 502]) {
      ;[status, body] = [each, text]
      const call = { method: 'GET', path: '/', answer, timeoutMs: 60_000 } as const
      await client.call(call, signal).catch((error: unknown) => {
        if (!(error instanceof HttpError)) throw error
      })
    }
  }
}

const READERS: Readonly<Record<string, () => Promise<Read> | Read>> = {
  yaml: () => (text) => parseJobFile(text, { fileName: 'job.yaml', nowMs: 0 }),
  globs: () => globs,
  scripts: async () => {
    const grammar = await parser()
    return (text) => analyze(grammar, { files: project({ 'train.py': text }), command: 'python train.py' })
  },
  shell: async () => {
    const grammar = await parser()
    return (text) => shell(grammar, text)
  },
  notebooks: async () => {
    const grammar = await parser()
    return (text) =>
      analyze(grammar, { files: project({ 'train.ipynb': text }), command: 'python train.ipynb' })
  },
  manifests: () => refusing('document', parseManifest),
  beats: () => refusing('document', parseBeat),
  signatures,
  'provider answers': answers,
}

const isTooDeep = (error: unknown): boolean => error instanceof RangeError

async function main(): Promise<void> {
  const reader = process.argv.at(-1)!
  const read = await READERS[reader]!()
  for await (const line of createInterface({ input: process.stdin })) {
    const began = process.cpuUsage()
    let [problem, isOver]: [string | null, boolean] = [null, false]
    try {
      await read(Buffer.from(line, 'base64').toString())
    } catch (error) {
      // Deep nesting exhausts the stack, here or in WebAssembly, which is of no use afterwards: the product reads each program in a new thread.
      isOver = SOURCES[reader]!.isInThread === true && isTooDeep(error)
      if (!isOver)
        problem = error instanceof Error ? (error.stack ?? error.message).slice(0, 600) : String(error)
    }
    const { user, system } = process.cpuUsage(began)
    process.stdout.write(`${JSON.stringify({ ms: (user + system) / 1_000, problem, isOver })}\n`)
  }
}

void main()
