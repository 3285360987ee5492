/** A server and a store that are away, and what a server has of one job. */
import { ServiceError, WorkflowNotFoundError, type Client } from '@temporalio/client'
import type { JobState } from '../../core/job/job'
import { emptyTreasury, settle } from '../../core/money/treasury'
import { HOUR_MS, MINUTE_MS } from '../../core/time/time'
import { StoreError, type ObjectStore } from '../../storage/store'
import { JOB, NOW, SPEC, statusOf } from '../client/world'

export const DEPLOYMENT = 'dep-0000000000'
export const SUBMITTED = NOW - HOUR_MS
export const LAUNCHED = NOW - 10 * MINUTE_MS
/** Ten minutes at $3.60 an hour. */
export const SO_FAR = 600_000
export const SETTLED = 250_000

export const SEVENTH = 'Queue: waiting, 7th for any backend. Older jobs with equal requests go first.'

/** The job as Temporal's search attributes and its workflow's status have it; missing if the server has forgotten it. */
export interface Held {
  status: string
  state: JobState
  reason: string
  /** State of its attempt in progress. */
  attempt?: string
}

const attributes = (values: Record<string, string>) => ({
  typedSearchAttributes: { get: ({ name }: { name: string }) => values[name] },
})

export function serverOf(held: Held | undefined, isServed: boolean): Client {
  const own = held && {
    workflowId: `job/${JOB}`,
    startTime: new Date(SUBMITTED),
    closeTime: held.status === 'RUNNING' ? undefined : new Date(NOW - MINUTE_MS),
    status: { name: held.status },
    raw: {},
    ...attributes({
      CrucibleName: SPEC.name,
      CrucibleOwner: 'somebody',
      CrucibleState: held.state,
      CrucibleReason: held.reason,
    }),
  }
  const attempt = held?.attempt && {
    workflowId: `job/${JOB}/1`,
    startTime: new Date(LAUNCHED),
    status: { name: 'RUNNING' },
    raw: {},
    ...attributes({ CrucibleState: held.attempt, CrucibleReason: 'starting' }),
  }
  const answers: Record<string, () => unknown> = {
    [`job/${JOB}`]: () => workflowStatus(held!),
    'treasury/2026-11': () =>
      settle(emptyTreasury('2026-11'), {
        jobId: 'other',
        owner: 'ada',
        spentMicroUsd: 77,
        isCertain: true,
      }),
  }
  const isOutside = held?.status === 'TERMINATED'
  return {
    withDeadline: (_untilMs: number, call: () => unknown) => call(),
    activity: { execute: () => Promise.reject(new Error('activity timed out')) },
    schedule: {
      getHandle: (id: string) => ({
        describe: async () =>
          id.includes('ranker')
            ? { state: {}, raw: {}, info: { nextActionTimes: [], runningActions: [] } }
            : { action: { args: [{ deployment: DEPLOYMENT }] } },
      }),
    },
    workflow: {
      async *list({ query }: { query: string }) {
        if (query.includes("'attempt'") && attempt) yield attempt
        if (!query.includes("WorkflowType = 'job'") || own === undefined) return
        const asked = /CrucibleState IN \(([^)]*)\)/.exec(query)?.[1]
        const isMatch = asked === undefined || asked.includes(`'${held!.state}'`)
        if (isOutside ? asked === undefined || query.includes("= 'Terminated'") : isMatch) yield own
      },
      getHandle: (workflowId: string) => ({
        describe: async () => {
          const known = [own, attempt].find((one) => one && one.workflowId === workflowId)
          if (!known) throw new WorkflowNotFoundError('none', workflowId, undefined)
          return known
        },
        query: async () => {
          if (!isServed || answers[workflowId] === undefined)
            throw new ServiceError('no worker', { cause: Object.assign(new Error(), { code: 4 }) })
          return answers[workflowId]()
        },
      }),
    },
  } as unknown as Client
}

/** The workflow's own status. */
function workflowStatus({ status, state, reason }: Held): unknown {
  const isPending = state === 'pending'
  return statusOf({
    state,
    reason: reason as never,
    // As it was at the last question for a machine, some time ago.
    message: isPending ? SEVENTH : 'From the workflow.',
    submittedAtMs: SUBMITTED,
    spentMicroUsd: status === 'RUNNING' || status === 'TERMINATED' ? 0 : SETTLED,
    ...(isPending
      ? { attempts: [], attemptsTotal: 0 }
      : { attempts: [{ ...statusOf().attempts[0]!, state: 'provisioning', reason: 'launching' }] }),
  })
}

export function storeAway(url: string): ObjectStore {
  const away = (): Promise<never> => Promise.reject(new StoreError('the disk is gone', { isTransient: true }))
  return new Proxy({ url } as ObjectStore, {
    get: (target, name) =>
      name === 'url'
        ? target.url
        : name === 'list'
          ? async function* () {
              yield await away()
            }
          : away,
  })
}
