import {
  ActivityFailure,
  allHandlersFinished,
  ApplicationFailure,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { carrying, failureFrom } from '../../core/failure'
import { PROMISE_UPDATE, SETTLE_UPDATE, TREASURY_QUERY } from '../../core/messages'
import { plural } from '../../core/plural'
import {
  applyAnswer,
  isGranted,
  lower,
  move,
  questionOf,
  settle,
  viewOf,
  type Account,
  type BudgetAnswer,
  type BudgetRequest,
  type SettleRequest,
  type TreasuryState,
} from '../../core/money/treasury'
import { nameInMarkdown } from '../../core/markdown'
import { local } from '../activities'
import { kept } from '../forever'
import { money } from '../markdown'

const promiseUpdate = defineUpdate<BudgetAnswer, [BudgetRequest]>(PROMISE_UPDATE)
const settleUpdate = defineUpdate<void, [SettleRequest]>(SETTLE_UPDATE)
const stateQuery = defineQuery<TreasuryState>(TREASURY_QUERY)

/**
 * Manages the money of one month. It stays open, because jobs of the month may run into the next, and is the only place where a
 * deployment's money is reserved. It handles one update after another, so that each decision sees the result of the previous one.
 */
export async function treasury(input: TreasuryState): Promise<void> {
  let state = input
  const inTurn = oneAfterAnother()
  const show = (next: TreasuryState): void => {
    state = next
    setCurrentDetails(detailsOf(state))
  }
  setHandler(stateQuery, () => state, { description: 'Reserved and spent money.' })
  setHandler(
    promiseUpdate,
    (request) =>
      inTurn(async () => {
        const { from, isLowered } = request
        if (isLowered === true) {
          show(lower(state, request))
          return { kind: 'promised' }
        }
        if (from !== undefined) {
          show(move(state, { ...request, from }))
          return { kind: 'promised' }
        }
        if (isGranted(state, request)) return { kind: 'promised' }
        const answer = await decideOn(state, request)
        show(applyAnswer(state, request, answer))
        return answer
      }),
    { description: 'Reserve the budget of a job.' },
  )
  setHandler(settleUpdate, (request) => inTurn(() => show(settle(state, request))), {
    description: 'Report the end of a job, which releases its unspent money.',
  })
  show(state)
  await condition(() => workflowInfo().continueAsNewSuggested)
  await condition(allHandlersFinished)
  await continueAsNew<typeof treasury>(state)
}

/** The policy's answer, on record as a marker. A failed activity fails this update only; its sender asks again. */
async function decideOn(state: TreasuryState, request: BudgetRequest): Promise<BudgetAnswer> {
  try {
    return await local.admitBudget(questionOf(state, request))
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error
    const message = `No worker could check the budget of ${state.month}: ${failureFrom(error).message}`
    throw ApplicationFailure.create(carrying({ class: 'transient', message }))
  }
}

/** Runs steps in order of arrival, each after the end of the previous one. */
function oneAfterAnother(): <T>(step: () => T | Promise<T>) => Promise<T> {
  let last: Promise<unknown> = kept(Promise.resolve())
  return (step) => {
    const done = kept(last.then(step))
    last = kept(done.catch(() => undefined))
    return done
  }
}

function detailsOf(state: TreasuryState): string {
  const { month, total, owners, jobs, reservations } = viewOf(state)
  return [
    `**${month}**: ${inWords(total)}`,
    '',
    ...owners.map(({ owner, ...account }) => `- ${nameInMarkdown(owner)}: ${inWords(account)}`),
    '',
    `${plural(jobs.length, 'open job')}, ${plural(reservations.length, 'open purchase')} of reservations.`,
  ].join('\n')
}

function inWords({ limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd }: Account): string {
  const words = `${money(spentMicroUsd)} spent, ${money(promisedMicroUsd)} reserved`
  return limitMicroUsd === null
    ? words
    : `${words}, ${money(leftMicroUsd ?? 0)} left of ${money(limitMicroUsd)}`
}
