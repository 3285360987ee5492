import { describe, expect, it, jest } from '@jest/globals'
import { ChildWorkflowFailure, RetryState, WorkflowExecutionAlreadyStartedError } from '@temporalio/common'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/time/time'
import type { ReservationOrder } from '../../core/reservation/reservation'
import type * as Purchasing from '../../workflows/reservation/purchasing'
import type { ReservationRun } from '../../workflows/reservation/run'
import { INTENT, ownedOf, quoteOf } from '../planner/reserving/facts'

let tryToBuy: () => Promise<object>

jest.mock('@temporalio/workflow', () => ({
  ...jest.requireActual<object>('@temporalio/common'),
  executeChild: () => tryToBuy(),
  proxyActivities: () => ({}),
}))

const { send } = jest.requireActual<typeof Purchasing>('../../workflows/reservation/purchasing')

const ORDER: ReservationOrder = {
  intent: INTENT,
  send: 1,
  deployment: 'dep',
  owner: 'ada',
  backend: 'ec2',
  quote: quoteOf(),
}
const BUSY = new WorkflowExecutionAlreadyStartedError('busy', 'buyer/ec2/1234/east', 'buyCapacity')
const FAILED = new ChildWorkflowFailure(
  'default',
  { workflowId: 'buyer/ec2/1234/east', runId: 'r' },
  'buyCapacity',
  RetryState.NON_RETRYABLE_FAILURE,
  new Error('the credentials have expired'),
)
/** Of one try: a child, a pause, and the workflow tasks between them. The server keeps five times as many. */
const EVENTS_OF_TRY = 12
const EVENTS_MAX = 10_000

/** How long one history tries while the purchase fails in this way. */
async function tried(
  error: Error,
  times: number,
): Promise<{ pausesMs: number[]; result: object; troubles: (string | undefined)[] }> {
  const pausesMs: number[] = []
  const troubles: (string | undefined)[] = []
  let left = times
  tryToBuy = async () => {
    if (left-- > 0) throw error
    return { kind: 'reserved', reservation: ownedOf() }
  }
  const run = {
    input: {},
    task: () => ({}),
    page: {
      trouble: (failure?: { message: string }) => void troubles.push(failure?.message),
      retries: { pause: async (ms: number) => void pausesMs.push(ms) },
    },
  } as unknown as ReservationRun
  return { result: await send(run, ORDER, '1234'), pausesMs, troubles }
}

describe('a purchase that another one keeps waiting, or that cannot be seen through', () => {
  it.each([
    ['busy', BUSY],
    ['failed', FAILED],
  ])('is tried often at first, and for months in one history: %s', async (_, error) => {
    const soon = await tried(error, 3)
    expect(soon).toMatchObject({
      result: { kind: 'reserved', reservation: ownedOf() },
      pausesMs: [20_000, 20_000, 20_000],
    })
    const { pausesMs } = await tried(error, Math.floor(EVENTS_MAX / EVENTS_OF_TRY))
    expect(pausesMs.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(90 * DAY_MS)
    const firstDay = pausesMs.findIndex(
      (_one, at) => pausesMs.slice(0, at).reduce((a, b) => a + b, 0) > DAY_MS,
    )
    expect(Math.max(...pausesMs.slice(0, firstDay))).toBe(10 * MINUTE_MS)
    const changes = pausesMs.flatMap((ms, at) => (ms === pausesMs[at - 1] ? [] : [[at, ms]]))
    expect(changes).toEqual([
      [0, 20_000],
      [30, MINUTE_MS],
      [90, 10 * MINUTE_MS],
      [300, 6 * HOUR_MS],
    ])
  })

  it('shows why it failed until the next try, and nothing while it only waits for its turn', async () => {
    expect((await tried(FAILED, 1)).troubles).toEqual(['the credentials have expired', undefined])
    expect((await tried(BUSY, 1)).troubles).toEqual([undefined])
  })

  it('names the workflow that has its id, and the command that ends it, after two minutes', async () => {
    const { troubles } = await tried(BUSY, 7)
    expect(troubles.slice(0, 6)).toEqual(Array(6).fill(undefined))
    expect(troubles[6]).toMatch(
      /the id buyer\/ec2\/1234\/east, .* temporal workflow terminate --workflow-id buyer\/ec2\/1234\/east\.$/,
    )
  })

  it('is not tried again after an error of another kind', async () => {
    await expect(tried(new Error('cancelled'), 1)).rejects.toThrow('cancelled')
  })
})
