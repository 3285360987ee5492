/** Searches for capacity, which may buy it. */
import { TypedSearchAttributes } from '@temporalio/common'
import { randomInt } from 'node:crypto'
import type * as temporal from '@temporalio/client'
import { makeReservationId } from '../../core/ids'
import { ORCHESTRATOR_QUEUE, reservationWorkflowId, resetCommand, WORKFLOW_TYPES } from '../../core/queues'
import type { CapacityRequest } from '../../core/reservation/reservation'
import {
  RESERVATION_ID_PATTERN,
  type PurchaseRule,
  type ReservationInput,
} from '../../core/reservation/reserving'
import { isOpenStatus } from '../../core/workflow-status'
import { isStoredAlike } from '../../storage/json'
import { forgetRequest, lastReservationEntry, putRequest } from '../../storage/reservations'
import { ensureDeploymentKey } from '../../storage/secrets'
import { putWebhook } from '../../storage/webhooks'
import { ATTRIBUTE_KEYS } from '../attributes'
import type { Context } from '../context'
import { checkSameDeployment, deploymentForWriting } from '../deployment'
import { CrucibleError, isTemporals } from '../errors'
import { asStanding } from '../repeated'
import { uiUrlOf } from '../job/read-view'
import { refuseTaken } from '../taken-id'

/** @experimental */
export interface ReservationRequest {
  wish: CapacityRequest
  rule: PurchaseRule
  purpose?: string
  /** URL that receives the reservation's events (`ReservationEvent`). It is stored sealed. */
  webhook?: string
  /** Makes the request repeatable. Random if missing. */
  id?: string
}

/** @experimental */
export interface Reserved {
  id: string
  workflowId: string
  /** Whether the reservation is new; false if it existed already. */
  isNew: boolean
  /** Whether the reservation existed already and is over, so that no search begins. */
  isOver?: true
}

/**
 * Starts the search for capacity, which may buy what its rule allows. The same id with the same content is the same reservation; another
 * content is refused with `usage`. Throws `failed` if its workflow was ended by hand.
 */
export async function reserve(context: Context, request: ReservationRequest): Promise<Reserved> {
  const { store, config } = context
  const { wish, rule, purpose, webhook } = request
  if (request.id !== undefined) checkId(request.id)
  const url = webhook === undefined ? undefined : checkedUrl(webhook)
  const client = await context.temporal()
  await checkSameDeployment(context, client)
  await context.compareClocks()
  context.clock.check()
  const reservationId = request.id ?? makeReservationId(randomInt)
  const input: ReservationInput = {
    reservationId,
    wish,
    rule,
    owner: config.owner,
    deployment: await deploymentForWriting(store),
    submittedAtMs: context.now(),
    purpose,
    pageUrl: uiUrlOf(config, reservationWorkflowId(reservationId)),
    webhookOf: webhook === undefined ? undefined : reservationId,
  }
  const standing = await putRequest(store, input)
  if (!isSameRequest(standing, input))
    throw new CrucibleError('usage', `A different reservation ${reservationId} already exists.`, {
      hint: 'Ids are never reused: choose another one, or leave it out for a generated id.',
    })
  if (url !== undefined) {
    const key = await ensureDeploymentKey(config.home.secretKeyFile)
    await putWebhook(store, key, { id: reservationId, url })
  }
  const workflowId = reservationWorkflowId(reservationId)
  // Whether a reservation is over. Temporal forgets a closed workflow after a while, and would start it again.
  const isOver = async (): Promise<boolean> =>
    (await lastReservationEntry(store, reservationId))?.kind === 'over'
  if (await isOver()) return { id: reservationId, workflowId, isNew: false, isOver: true }
  const isNew = await start(context, client, standing)
  if (isNew) return { id: reservationId, workflowId, isNew }
  const { status } = await client.workflow.getHandle(workflowId).describe()
  if (isOpenStatus(status.name)) return { id: reservationId, workflowId, isNew }
  if (await isOver()) return { id: reservationId, workflowId, isNew, isOver: true }
  throw new CrucibleError(
    'failed',
    `${reservationId} already exists, but its workflow was terminated by hand: it is not watched, and nothing was started.`,
    {
      hint: `Continue it: \`${resetCommand(workflowId)}\`. It finds its purchases and buys nothing again.`,
    },
  )
}

/** Whether a repeated command means the same request, although `in 30 days` is then another instant. */
function isSameRequest(standing: ReservationInput, asked: ReservationInput): boolean {
  const laterMs = asked.submittedAtMs - standing.submittedAtMs
  const same = (was: number | undefined, is: number | undefined): number | undefined =>
    asStanding(was, is, laterMs)
  const { earliestStartAtMs, latestStartAtMs, latestEndAtMs } = standing.wish
  const { wish, rule } = asked
  const repeated = {
    wish: {
      ...wish,
      earliestStartAtMs: same(earliestStartAtMs, wish.earliestStartAtMs),
      latestStartAtMs: same(latestStartAtMs, wish.latestStartAtMs),
      latestEndAtMs: same(latestEndAtMs, wish.latestEndAtMs),
    },
    rule: { ...rule, searchUntilAtMs: same(standing.rule.searchUntilAtMs, rule.searchUntilAtMs) },
  }
  return isStoredAlike({ wish: standing.wish, rule: standing.rule }, repeated)
}

function checkedUrl(webhook: string): string {
  const { protocol = '', username, password } = URL.parse(webhook) ?? {}
  if (username || password)
    throw new CrucibleError(
      'usage',
      'The webhook has a user name or a password in its URL, which requests cannot contain.',
      {
        hint: 'Leave them out: a webhook is trusted by its path.',
      },
    )
  if (/^https?:$/.test(protocol)) return webhook
  throw new CrucibleError('usage', 'The webhook is not a URL of http or https.', {
    hint: 'Write, for example, --notify https://hooks.example.com/crucible.',
  })
}

export function checkId(id: string): void {
  if (RESERVATION_ID_PATTERN.test(id)) return
  throw new CrucibleError('usage', `"${id}" is not a valid reservation id.`, {
    hint: 'Write res- and at most 40 of a-z, 0-9 and dashes, such as res-ranker-2027-q1.',
  })
}

async function start({ store }: Context, client: temporal.Client, input: ReservationInput): Promise<boolean> {
  try {
    await client.workflow.start(WORKFLOW_TYPES.reserveCapacity, {
      workflowId: reservationWorkflowId(input.reservationId),
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue: ORCHESTRATOR_QUEUE,
      args: [input],
      typedSearchAttributes: new TypedSearchAttributes([
        { key: ATTRIBUTE_KEYS.name, value: input.purpose ?? input.reservationId },
        { key: ATTRIBUTE_KEYS.owner, value: input.owner },
        { key: ATTRIBUTE_KEYS.state, value: 'searching' },
        { key: ATTRIBUTE_KEYS.backend, value: input.wish.backend },
      ]),
      staticSummary: `capacity: ${input.wish.count} × ${input.wish.types.join(' or ')}`,
    })
    return true
  } catch (error) {
    if (!isTemporals(error, 'WorkflowExecutionAlreadyStartedError')) throw error
    const { reservationId } = input
    await refuseTaken(client, reservationWorkflowId(reservationId), () => forgetRequest(store, reservationId))
    return false
  }
}
