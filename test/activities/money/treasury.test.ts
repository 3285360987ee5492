import { describe, expect, it } from '@jest/globals'
import { createServer, type Server } from 'node:net'
import {
  Client,
  Connection,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client'
import { Treasury, type EndedBudget } from '../../../activities/money/treasury'
import type { RecordKind } from '../../../core/job/record'
import { reservationBudgetId, type SettleRequest } from '../../../core/money/treasury'
import type { ReservationOrder } from '../../../core/reservation/reservation'
import { Purchases } from '../../../storage/purchases'
import { FileStore } from '../../../storage/file-store'
import { layout } from '../../../storage/layout'
import { putRecord } from '../../../storage/record'
import { quoteOf } from '../../planner/reserving/facts'
import { testFolder } from '../../support/folders'
import { partialEntry } from '../../support/record'

/** A Temporal server that hangs up on every caller. */
async function hangingUp(): Promise<{ server: Server; address: string }> {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  const { port } = server.address() as { port: number }
  return { server, address: `127.0.0.1:${port}` }
}

describe('the money of months', () => {
  it('is asked for again where the server does not answer: a job does not fail because of that', async () => {
    const { server, address } = await hangingUp()
    const connection = Connection.lazy({ address, interceptors: [] })
    const treasury = new Treasury({
      client: new Client({ connection }),
      store: new FileStore(testFolder('treasury'), Date.now),
      owners: () => Promise.resolve('open'),
      limits: { monthMicroUsd: 1, owners: {} },
    })
    const wanted = { jobId: 'job-1', owner: 'ada', month: '2026-11', microUsd: 1 }
    await expect(treasury.promise(wanted, NEVER)).rejects.toMatchObject({
      failure: {
        class: 'transient',
        message: expect.stringContaining('The budget of 2026-11 could not be read') as unknown,
      },
    })
    await connection.close()
    server.close()
  })
})

/** The part of a client that shows that a workflow was started with the deployment's key. */
const OWN_ORIGIN = {
  options: { namespace: 'default', loadedDataConverter: { payloadCodecs: [] } },
  workflowService: {
    getWorkflowExecutionHistory: () =>
      Promise.resolve({
        history: { events: [{ workflowExecutionStartedEventAttributes: { input: { payloads: [{}] } } }] },
      }),
  },
}

describe('money that is certainly spent', () => {
  /** A server that knows no treasury of the month, or that had it terminated by hand. */
  class Forgetful {
    readonly begun: unknown[] = []

    constructor(private readonly isTerminated = false) {}

    settle(request: SettleRequest): Promise<void> {
      const gone = (): Promise<never> =>
        Promise.reject(new WorkflowNotFoundError('gone', 'treasury', undefined))
      const executeUpdateWithStart = (_name: string, { args }: { args: [SettleRequest] }): Promise<void> => {
        if (this.isTerminated)
          return Promise.reject(new WorkflowExecutionAlreadyStartedError('ended', 'treasury', 'treasury'))
        this.begun.push(args[0])
        return Promise.resolve()
      }
      const workflow = { getHandle: () => ({ executeUpdate: gone }), executeUpdateWithStart }
      const treasury = new Treasury({
        client: { ...OWN_ORIGIN, workflow, withAbortSignal } as unknown as Client,
        store: new FileStore(testFolder('forgetful'), Date.now),
        owners: () => Promise.resolve('open'),
        limits: { owners: {} },
      })
      return treasury.settle(MONTH, request, NEVER)
    }
  }

  const PAID: SettleRequest = { jobId: 'reservation/res-1/1', owner: 'ada', spentMicroUsd: 5 }

  it('begins the month again on a server that was restored from a backup that is older than it', async () => {
    const server = new Forgetful()
    await server.settle({ ...PAID, isCertain: true })
    expect(server.begun).toEqual([{ ...PAID, isCertain: true }])
  })

  it('is not asked for where it was only promised, and a month that was terminated by hand stays so', async () => {
    const [server, ended] = [new Forgetful(), new Forgetful(true)]
    await server.settle(PAID)
    await ended.settle({ ...PAID, isCertain: true })
    expect([...server.begun, ...ended.begun]).toEqual([])
  })
})

const MONTH = '2026-11'
const NEVER = new AbortController().signal
const withAbortSignal = <T>(_signal: AbortSignal, ask: () => Promise<T>): Promise<T> => ask()
const PROMISED = 1_000
const SUBMITTED_AT_MS = Date.UTC(2026, 10, 3)

/** A month in which jobs were ended by hand: what is on their record, and which workflows still run. */
class EndedByHand {
  readonly settled: SettleRequest[] = []
  readonly open = new Set<string>()
  readonly store = new FileStore(testFolder('ended-by-hand'), Date.now)
  readonly treasury: Treasury
  private seq = 0

  constructor(jobs: string[], state: 'RUNNING' | 'TERMINATED' = 'RUNNING') {
    const promised = Object.fromEntries(jobs.map((jobId) => [jobId, { owner: 'ada', microUsd: PROMISED }]))
    const handle = {
      describe: () => Promise.resolve({ status: { name: state } }),
      query: () => Promise.resolve({ promised }),
      executeUpdate: (_name: string, { args }: { args: [SettleRequest] }) => {
        this.settled.push(args[0])
        return Promise.resolve()
      },
    }
    // The first answer is a refusal, so that the treasury looks for promises to take back.
    const refused = { kind: 'refused', message: 'No money is left.', hint: 'Wait.' }
    const answers = [refused, { kind: 'promised' }]
    const workflow = {
      getHandle: () => handle,
      executeUpdateWithStart: () => Promise.resolve(answers.shift() ?? refused),
    }
    this.treasury = new Treasury({
      client: { ...OWN_ORIGIN, workflow, withAbortSignal } as unknown as Client,
      store: this.store,
      owners: ({ jobId, attempt }) =>
        Promise.resolve(
          this.open.has(attempt === undefined ? jobId : `${jobId}/${attempt}`) ? 'open' : 'closed',
        ),
      limits: { monthMicroUsd: PROMISED, owners: {} },
    })
  }

  async record(jobId: string, kind: RecordKind, attempt?: number, costMicroUsd?: number): Promise<void> {
    const entry = { seq: this.seq++, atMs: SUBMITTED_AT_MS, kind, summary: '', data: { costMicroUsd } }
    await putRecord(this.store, jobId, partialEntry(attempt === undefined ? entry : { ...entry, attempt }))
  }

  promises(): Promise<EndedBudget[]> {
    return this.treasury.endedPromises(MONTH)
  }
}

describe('what a job that was ended by hand has spent of its promise', () => {
  const JOB = 'job-1'

  it('is what its settled attempts cost', async () => {
    const month = new EndedByHand([JOB])
    await month.record(JOB, 'submitted')
    for (const attempt of [1, 2]) {
      await month.record(JOB, 'launched', attempt)
      await month.record(JOB, 'settled', attempt, 100 * attempt)
    }
    const spent = { spentMicroUsd: 300, sinceMs: SUBMITTED_AT_MS }
    expect(await month.promises()).toEqual([{ jobId: JOB, owner: 'ada', microUsd: PROMISED, ...spent }])
  })

  it('is all of it while one of its attempts was never settled', async () => {
    const month = new EndedByHand([JOB])
    await month.record(JOB, 'launched', 1)
    await month.record(JOB, 'settled', 1, 100)
    await month.record(JOB, 'launched', 2)
    expect(await month.promises()).toMatchObject([{ spentMicroUsd: PROMISED }])
  })

  it('is all of it where its record is damaged, which is said of no other job', async () => {
    const month = new EndedByHand([JOB, 'job-2'])
    await month.store.put(layout.record(JOB, 0), '[42]')
    expect(await month.promises()).toMatchObject([{ spentMicroUsd: PROMISED }, { spentMicroUsd: 0 }])
  })

  it('is nothing where no attempt was launched, since the begin of the month', async () => {
    const month = new EndedByHand([JOB])
    expect(await month.promises()).toMatchObject([{ spentMicroUsd: 0, sinceMs: Date.parse(MONTH) }])
  })

  it('is not known while one of its attempts is open, and while it is open itself', async () => {
    const month = new EndedByHand([JOB])
    await month.record(JOB, 'launched', 1)
    month.open.add(`${JOB}/1`)
    expect(await month.promises()).toEqual([])
    month.open.clear()
    month.open.add(JOB)
    expect(await month.promises()).toEqual([])
    month.open.clear()
    expect(await month.promises()).toHaveLength(1)
  })

  it('is taken back for a job that needs it, and only of jobs that are over', async () => {
    const month = new EndedByHand([JOB, 'job-open'])
    month.open.add('job-open')
    await month.treasury.promise({ jobId: 'job-new', owner: 'bob', month: MONTH, microUsd: 500 }, NEVER)
    expect(month.settled).toEqual([{ jobId: JOB, owner: 'ada', spentMicroUsd: 0 }])
  })

  it('frees nothing for a new job while its attempt runs', async () => {
    const month = new EndedByHand([JOB])
    await month.record(JOB, 'launched', 1)
    month.open.add(`${JOB}/1`)
    const wanted = { jobId: 'job-new', owner: 'bob', month: MONTH, microUsd: 500 }
    await expect(month.treasury.promise(wanted, NEVER)).rejects.toMatchObject({
      failure: { class: 'quota', message: 'No money is left.' },
    })
    expect(month.settled).toEqual([])
  })

  it('is nothing of a month whose treasury was ended by hand', async () => {
    expect(await new EndedByHand([JOB], 'TERMINATED').promises()).toEqual([])
  })
})

describe('money that was promised for a purchase', () => {
  const PURCHASE = { reservationId: 'res-1', send: 1 }
  const ID = reservationBudgetId('res-1', 1)
  const order = { intent: 'res-1', send: 1, quote: quoteOf() } as ReservationOrder

  it('is free again where it was never sent, and from then on it cannot be', async () => {
    const month = new EndedByHand([ID])
    await month.treasury.settlePurchase(MONTH, PURCHASE, NEVER)
    expect(month.settled).toEqual([{ jobId: ID, owner: 'ada', spentMicroUsd: 0 }])
    expect(await new Purchases(month.store, Date.now).mark(order, { ownedBefore: [] })).toBeUndefined()
  })

  it('is free again where it certainly had no effect', async () => {
    const month = new EndedByHand([ID])
    const purchases = new Purchases(month.store, Date.now)
    await purchases.mark(order, { ownedBefore: [] })
    await purchases.conclude(order, { kind: 'no-effect', failure: { class: 'capacity', message: 'sold' } })
    await month.treasury.settlePurchase(MONTH, PURCHASE, NEVER)
    expect(month.settled).toEqual([{ jobId: ID, owner: 'ada', spentMicroUsd: 0 }])
  })

  it('counts as spent where it was sent, and may have been made', async () => {
    const month = new EndedByHand([ID])
    await new Purchases(month.store, Date.now).mark(order, { ownedBefore: [] })
    await month.treasury.settlePurchase(MONTH, PURCHASE, NEVER)
    expect(month.settled).toEqual([{ jobId: ID, owner: 'ada', spentMicroUsd: PROMISED }])
  })

  it('counts as spent where its mark is damaged', async () => {
    const month = new EndedByHand([ID])
    await month.store.put(layout.purchase('res-1', 1), '{"kind":"sent"')
    await month.treasury.settlePurchase(MONTH, PURCHASE, NEVER)
    expect(month.settled).toEqual([{ jobId: ID, owner: 'ada', spentMicroUsd: PROMISED }])
  })

  it('is free again where another month pays: a history was set back before it was sent', async () => {
    const month = new EndedByHand([ID])
    await new Purchases(month.store, Date.now).mark({ ...order, month: '2026-12' }, { ownedBefore: [] })
    await month.treasury.settlePurchase(MONTH, PURCHASE, NEVER)
    expect(month.settled).toEqual([{ jobId: ID, owner: 'ada', spentMicroUsd: 0 }])
  })

  it('is left alone where nothing is promised for it', async () => {
    const month = new EndedByHand(['job-1'])
    await month.treasury.settlePurchase(MONTH, PURCHASE, NEVER)
    expect(month.settled).toEqual([])
  })
})
