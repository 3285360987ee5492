import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineQuery,
  defineUpdate,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import { PROMISE_UPDATE, SETTLE_UPDATE, TREASURY_QUERY } from '../core/messages'
import {
  promise,
  settle,
  viewOf,
  type Account,
  type PromiseAnswer,
  type PromiseRequest,
  type SettleRequest,
  type TreasuryState,
} from '../core/treasury'
import { nameInMarkdown } from '../core/markdown'
import { money } from './markdown'

const promiseUpdate = defineUpdate<PromiseAnswer, [PromiseRequest]>(PROMISE_UPDATE)
const settleUpdate = defineUpdate<void, [SettleRequest]>(SETTLE_UPDATE)
const stateQuery = defineQuery<TreasuryState>(TREASURY_QUERY)

/**
 * The money of one month. It stays open, because jobs of the month may run into the next; it handles one update after another,
 * and is the only place where a deployment's money is reserved.
 */
export async function treasury(input: TreasuryState): Promise<void> {
  let state = input
  const move = (next: TreasuryState): void => {
    state = next
    setCurrentDetails(detailsOf(state))
  }
  setHandler(stateQuery, () => state, { description: 'What is reserved, and what is spent.' })
  setHandler(
    promiseUpdate,
    (request) => {
      const { state: next, answer } = promise(state, request)
      move(next)
      return answer
    },
    { description: 'Reserve the budget of a job.' },
  )
  setHandler(settleUpdate, (request) => move(settle(state, request)), {
    description: 'Report the end of a job, which releases its unspent money.',
  })
  move(state)
  await condition(() => workflowInfo().continueAsNewSuggested)
  await condition(allHandlersFinished)
  await continueAsNew<typeof treasury>(state)
}

function detailsOf(state: TreasuryState): string {
  const { month, total, owners, jobs } = viewOf(state)
  return [
    `**${month}**: ${inWords(total)}`,
    '',
    ...owners.map(({ owner, ...account }) => `- ${nameInMarkdown(owner)}: ${inWords(account)}`),
    '',
    `${jobs.length} open jobs.`,
  ].join('\n')
}

function inWords({ limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd }: Account): string {
  const words = `${money(spentMicroUsd)} spent, ${money(promisedMicroUsd)} reserved`
  return limitMicroUsd === null
    ? words
    : `${words}, ${money(leftMicroUsd ?? 0)} left of ${money(limitMicroUsd)}`
}
