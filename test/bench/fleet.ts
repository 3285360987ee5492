import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync, renameSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Client, Connection } from '@temporalio/client'
import { Crucible, readClientConfig } from '../../client'
import type { Beat } from '../../core/documents'
import { attemptIdOf, jobWorkflowId, SEARCH_ATTRIBUTES, WORKFLOW_TYPES } from '../../core/queues'
import { SECOND_MS } from '../../core/time/time'
import { openDeploymentKey } from '../../storage/deployment-key'
import type { Home } from '../../storage/home'
import { layout } from '../../storage/layout'
import { openStore } from '../../storage/open-store'
import { freshNamespace } from '../support/namespace'
import { testServer, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { SPEC } from '../workflows/harness'
import { Authentication } from '../../workers/authentication'
import { median, quantile, timed, usageOf, type Measure } from './measure'

const ROOT = join(__dirname, '..', '..')
const BACKEND = 'local'
/** The pace of a store that costs money to ask. */
const BEAT_MS = 10 * SECOND_MS
/** Submissions under way at once. */
const SUBMITTERS = 16
const SAMPLES = 50
/** Far beyond what a hundred thousand events take on two cores. */
const ALL_RUNNING_WITHIN_MS = 30 * 60 * SECOND_MS

/** Many jobs that run at once and quietly: what each costs the two kinds of worker, and whether people still get answers. */
export async function fleet(at: TestConnection, jobs: number, quietSeconds: number): Promise<Measure[]> {
  const quietMs = quietSeconds * SECOND_MS
  const connection = at.client.connection as Connection
  const namespace = await freshNamespace(connection)
  const home = await mkdtemp(join(tmpdir(), 'crucible-bench-'))
  const stage = new Stage(namespace, home)
  try {
    const workers = { orchestrator: await stage.orchestrator(), backend: await stage.backend() }
    const before = { orchestrator: usageOf(workers.orchestrator), backend: usageOf(workers.backend) }
    const ids = Array.from({ length: jobs }, (_, index) => `job-fleet-${index}`)
    const startedMs = performance.now()
    await stage.submitAll(ids)
    await stage.allRunning(at, jobs)
    const startMs = performance.now() - startedMs
    const quietFrom = { orchestrator: usageOf(workers.orchestrator), backend: usageOf(workers.backend) }
    await sleep(quietMs)
    const after = { orchestrator: usageOf(workers.orchestrator), backend: usageOf(workers.backend) }
    const measure = (name: string, value: number, unit: string, remark?: string): Measure => ({
      bench: 'fleet',
      name,
      value,
      unit,
      remark,
    })
    const perWorker = (['orchestrator', 'backend'] as const).flatMap((role) => [
      measure(
        `memory of the ${role} worker for each job`,
        ((after[role].rssKiB - before[role].rssKiB) * 1_024) / 1_000 / jobs,
        'kB',
        `${Math.round(before[role].rssKiB / 1_024)} MiB before, ${Math.round(after[role].rssKiB / 1_024)} with all`,
      ),
      measure(
        `cpu of the ${role} worker, all quiet`,
        ((after[role].cpuMs - quietFrom[role].cpuMs) * 100) / quietMs,
        '% of a core',
      ),
    ])
    return [
      measure(`${jobs} jobs submitted until all run`, startMs / SECOND_MS, 's'),
      ...perWorker,
      ...(await stage.answers(at, ids)),
    ]
  } finally {
    await stage.close()
    await rm(home, { recursive: true, force: true })
  }
}

/** The processes of a deployment, a client of it, and the machines: this process writes what their runners would. */
class Stage {
  readonly crucible: Crucible
  private readonly processes: ChildProcess[] = []
  private isClosed = false
  private readonly env: Record<string, string>
  private beating: NodeJS.Timeout | undefined

  constructor(
    private readonly namespace: string,
    home: string,
  ) {
    this.env = {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      CRUCIBLE_HOME: home,
      CRUCIBLE_OWNER: 'bench',
      TEMPORAL_ADDRESS: testServer().address,
      TEMPORAL_NAMESPACE: namespace,
      CRUCIBLE_LOG: 'error',
      CRUCIBLE_BEAT: '10s',
      CRUCIBLE_OBSERVE: '2s',
    }
    this.crucible = new Crucible(readClientConfig(this.env))
  }

  /** The worker as it is installed. */
  async orchestrator(): Promise<number> {
    const main = join(ROOT, 'dist', 'cli', 'main.js')
    const child = this.spawn([main, 'worker', 'orchestrator', '--json'], ['ignore', 'pipe', 'inherit'])
    await once(child.stdout!, 'data')
    return child.pid!
  }

  async backend(): Promise<number> {
    const { TEMPORAL_ADDRESS } = this.env
    const run = [
      '--import',
      './test/support/typescript.mjs',
      '-e',
      "require('./test/bench/fleet-worker.ts')",
      '--',
    ]
    const told = [BACKEND, TEMPORAL_ADDRESS!, this.namespace, this.home.storeUrl, this.home.secretKeyFile]
    const child = this.spawn([...run, ...told], ['ignore', 'ignore', 'inherit', 'ipc'])
    await once(child, 'message')
    return child.pid!
  }

  private get home(): Home {
    return readClientConfig(this.env).home
  }

  private spawn(args: string[], stdio: ('ignore' | 'pipe' | 'inherit' | 'ipc')[]): ChildProcess {
    const child = spawn(process.execPath, args, { cwd: ROOT, env: this.env, stdio })
    this.processes.push(child)
    child.once('exit', (code, signal) => {
      if (!this.isClosed) process.stderr.write(`${args.join(' ')} ended early: ${code ?? signal}\n`)
    })
    // They end with this process, however that ends.
    process.once('exit', () => child.kill('SIGKILL'))
    return child
  }

  async submitAll(ids: string[]): Promise<void> {
    const queue = [...ids]
    this.beatAll(ids)
    const next = async (): Promise<void> => {
      for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
        await this.crucible.submit({ id, directory: null, spec: { ...SPEC, name: 'fleet' } })
      }
    }
    await Promise.all(Array.from({ length: SUBMITTERS }, next))
  }

  /** Each machine beats at its pace, spread over time; each beat is written as a runner would, whole. */
  private beatAll(ids: string[]): void {
    const EVERY_MS = 50
    const atOnce = Math.ceil((ids.length * EVERY_MS) / BEAT_MS)
    const seqs = new Map<string, number>()
    let next = 0
    this.beating = setInterval(() => {
      for (let count = 0; count < atOnce; count++) {
        const id = ids[next++ % ids.length]!
        const seq = (seqs.get(id) ?? 0) + 1
        seqs.set(id, seq)
        this.beat(id, seq)
      }
    }, EVERY_MS)
  }

  private beat(jobId: string, seq: number): void {
    const path = join(fileURLToPath(this.home.storeUrl), layout.beat(jobId, 1))
    const beat: Beat = {
      attemptId: attemptIdOf(jobId, 1),
      seq,
      phase: 'running',
      gpus: [],
      checkpoint: null,
      restoredFrom: null,
      limitsSeq: 0,
      leaseSeq: 0,
      logLines: seq,
      clockMs: Date.now(),
      uptimeMs: seq * BEAT_MS,
      progress: { step: seq, stepsTotal: 1_000_000, loss: 1, atMs: Date.now() },
    }
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(`${path}.next`, JSON.stringify(beat))
    renameSync(`${path}.next`, path)
  }

  async allRunning(at: TestConnection, jobs: number): Promise<void> {
    const client = await this.clientIn(at)
    const query = `WorkflowType = '${WORKFLOW_TYPES.job}' AND ${SEARCH_ATTRIBUTES.state} = 'running'`
    await until(async () => (await client.workflow.count(query)).count >= jobs, ALL_RUNNING_WITHIN_MS)
  }

  /** How long people wait for answers about a job, and about many. */
  async answers(at: TestConnection, ids: string[]): Promise<Measure[]> {
    const client = await this.clientIn(at)
    const some = Array.from(
      { length: SAMPLES },
      (_, index) => ids[Math.floor((index * ids.length) / SAMPLES)]!,
    )
    const asked: Record<string, () => Promise<number[]>> = {
      'status query': () => each(some, (id) => client.workflow.getHandle(jobWorkflowId(id)).query('status')),
      'show: a job with its progress': () => each(some, (id) => this.crucible.get(id)),
      'list: 50 jobs': () => each(some.slice(0, 10), () => this.crucible.list()),
    }
    const measures: Measure[] = []
    for (const [name, ask] of Object.entries(asked)) {
      const tookMs = await ask()
      measures.push({
        bench: 'fleet',
        name,
        value: median(tookMs),
        unit: 'ms',
        remark: `median of ${tookMs.length}, 95 % within ${Math.round(quantile(tookMs, 0.95))} ms`,
      })
    }
    return measures
  }

  private async clientIn({ client: { connection } }: TestConnection): Promise<Client> {
    const { storeUrl, secretKeyFile } = this.home
    const key = await openDeploymentKey(openStore(storeUrl), secretKeyFile)
    return new Authentication(key).client(connection, this.namespace)
  }

  async close(): Promise<void> {
    this.isClosed = true
    clearInterval(this.beating)
    await this.crucible.close()
    for (const child of this.processes) {
      const ended = once(child, 'exit')
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await ended
    }
  }
}

async function each(ids: string[], ask: (id: string) => Promise<unknown>): Promise<number[]> {
  const took: number[] = []
  for (const id of ids) took.push(await timed(() => ask(id)))
  return took
}
