import { Client } from '@temporalio/client'
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker'
import type { DevServer } from '../../cli/dev/temporal/dev-server'
import type { TestConnection } from '../support/temporal'
import { Deployment, SPOT } from '../workflows/harness'
import type { BareInput } from './bare-workflows'
import { median, timed, usageOf, type Measure } from './measure'

const RATIO_MIN = 0.8
const WARM_UP = 5
/** A second or so of work that costs nothing, to measure the cost of a job without its machine. */
const WORKLOAD = { stepsTotal: 20, stepsPerSecond: 40, checkpointEverySteps: 0 }

/** Jobs a second from submission to end, against workflows of the same commands with nothing behind them; in pairs, in turn. */
export async function throughput(at: TestConnection, jobs: number, pairCount: number): Promise<Measure[]> {
  const deployment = await Deployment.start(at, {
    wares: [{ ...SPOT, stock: 1_000_000 }],
    behave: () => WORKLOAD,
    timing: { beatMs: 200 },
  })
  const bare = await bareWorkers(at, deployment.namespace)
  const running = bare.map((worker) => worker.run())
  try {
    const real = (round: number): Promise<unknown> =>
      allOf(jobs, async (index) => (await deployment.submit({}, { jobId: jobIdOf(round, index) })).result())
    // Bare workflows are not signed.
    const bareClient = new Client({ connection: at.client.connection, namespace: deployment.namespace })
    const plain = (round: number): Promise<unknown> =>
      allOf(jobs, (index) => bareJob(bareClient, `bare-${round}-${index}`))
    // The first of each fills caches; it is not counted.
    const warmUp = Math.min(WARM_UP, jobs)
    await allOf(warmUp, async (index) => (await deployment.submit({}, { jobId: jobIdOf(0, index) })).result())
    await allOf(warmUp, (index) => bareJob(bareClient, `bare-0-${index}`))
    const pairs: Pair[] = []
    for (let round = 1; round <= pairCount; round++) {
      const order = round % 2 === 1 ? [real, plain] : [plain, real]
      const [first, second] = [await cost(() => order[0]!(round)), await cost(() => order[1]!(round))]
      pairs.push(order[0] === real ? { real: first, bare: second } : { real: second, bare: first })
    }
    const events = [
      await eventsOf(deployment, `job/${jobIdOf(1, 0)}`),
      await eventsOf(deployment, 'bare-1-0'),
    ]
    return measuresOf(pairs, jobs, events)
  } finally {
    for (const worker of bare) worker.shutdown()
    await Promise.all(running)
    await deployment.close()
  }
}

const jobIdOf = (round: number, index: number): string => `job-${round}-${index}`

function allOf(count: number, work: (index: number) => Promise<unknown>): Promise<unknown> {
  return Promise.all(Array.from({ length: count }, (_, index) => work(index)))
}

interface Cost {
  ms: number
  /** Processor time of workers and server together: what decides on a machine that has nothing else to do. */
  cpuMs: number
}
interface Pair {
  real: Cost
  bare: Cost
}

async function cost(work: () => Promise<unknown>): Promise<Cost> {
  const before = cpuNowMs()
  const ms = await timed(work)
  return { ms, cpuMs: cpuNowMs() - before }
}

/** The workers are in this process. */
function cpuNowMs(): number {
  const { user, system } = process.cpuUsage()
  const { crucibleTestServer: server } = globalThis as { crucibleTestServer?: DevServer }
  return (user + system) / 1_000 + (server === undefined ? 0 : usageOf(server.pid).cpuMs)
}

function measuresOf(pairs: Pair[], jobs: number, events: number[]): Measure[] {
  const bench = 'throughput'
  const perSecond = (costs: Cost[]): number => (jobs * 1_000) / median(costs.map(({ ms }) => ms))
  const each = (ratios: number[]): string =>
    `pairs in turn: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')}`
  const ratios = pairs.map(({ real, bare }) => bare.ms / real.ms)
  const cpuRatios = pairs.map(({ real, bare }) => real.cpuMs / bare.cpuMs)
  return [
    {
      bench,
      name: `${jobs} jobs at once, submit to finish`,
      value: perSecond(pairs.map(({ real }) => real)),
      unit: 'jobs/s',
      remark: `${events[0]} events each, job and attempt`,
    },
    {
      bench,
      name: 'bare parent and child, the same commands',
      value: perSecond(pairs.map(({ bare }) => bare)),
      unit: 'jobs/s',
      remark: `${events[1]} events each`,
    },
    {
      bench,
      name: 'jobs against bare workflows',
      value: median(ratios),
      unit: 'x',
      remark: each(ratios),
      goal: { is: 'at least', value: RATIO_MIN },
    },
    {
      bench,
      name: 'processor time against bare workflows',
      value: median(cpuRatios),
      unit: 'x',
      remark: `${each(cpuRatios)}; workers and server`,
    },
  ]
}

async function bareJob(client: Client, id: string): Promise<unknown> {
  const input: BareInput = { id, verbsQueue: 'bare.verbs', watchQueue: 'bare.watch' }
  return client.workflow.execute('bareJob', { workflowId: id, taskQueue: 'bare', args: [input] })
}

/** As many workers as a deployment has, on as many queues. */
async function bareWorkers(at: TestConnection, namespace: string): Promise<Worker[]> {
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath: require.resolve('./bare-workflows'),
    logger: new DefaultLogger('ERROR'),
  })
  const activities = { nothing: async () => undefined }
  const common = { connection: at.nativeConnection, namespace, activities }
  return Promise.all([
    Worker.create({ ...common, taskQueue: 'bare', workflowBundle }),
    Worker.create({ ...common, taskQueue: 'bare.verbs' }),
    Worker.create({ ...common, taskQueue: 'bare.watch' }),
  ])
}

/** Of a workflow and its first child. */
async function eventsOf({ client }: Deployment, workflowId: string): Promise<number> {
  const counts = [workflowId, `${workflowId}/1`].map(
    async (id) => (await client.workflow.getHandle(id).fetchHistory()).events?.length ?? 0,
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}
