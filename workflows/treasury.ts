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
 * The money of one month. It stays open, for jobs of the month may run into the next; one update after another, it is the one place
 * where a deployment's money is promised.
 */
export async function treasury(input: TreasuryState): Promise<void> {
  let state = input
  const move = (next: TreasuryState): void => {
    state = next
    setCurrentDetails(detailsOf(state))
  }
  setHandler(stateQuery, () => state, { description: 'What is promised, and what is spent.' })
  setHandler(
    promiseUpdate,
    (request) => {
      const { state: next, answer } = promise(state, request)
      move(next)
      return answer
    },
    { description: 'Promise a job its budget.' },
  )
  setHandler(settleUpdate, (request) => move(settle(state, request)), {
    description: 'A job is over: what it did not spend comes back.',
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
    `${jobs.length} jobs are not over.`,
  ].join('\n')
}

function inWords({ limitMicroUsd, spentMicroUsd, promisedMicroUsd, leftMicroUsd }: Account): string {
  const words = `${money(spentMicroUsd)} spent, ${money(promisedMicroUsd)} promised`
  return limitMicroUsd === null
    ? words
    : `${words}, ${money(leftMicroUsd ?? 0)} left of ${money(limitMicroUsd)}`
}
