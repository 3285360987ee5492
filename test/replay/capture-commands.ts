/** Runs in the sandbox of a replayed workflow and hands out what a replay itself does not compare. */
import { proxySinks, type Sinks, type WorkflowInterceptorsFactory } from '@temporalio/workflow'
import { getActivator } from '@temporalio/workflow/lib/global-attributes'

interface CaptureSinks extends Sinks {
  capture: { activation(commands: unknown[], views: string): void }
}

/**
 * Requests that are tried on every workflow after each of its steps, by name of the update: whether it would accept them. A refused
 * update leaves nothing in a history.
 */
const REQUESTS: Readonly<Record<string, (nowMs: number) => readonly object[]>> = {
  cancelNow: () => [{}],
  migrate: () => [{}, { to: { backend: 'nowhere' } }, { to: { backend: 'scripted' } }],
  extend: (nowMs) => [
    {},
    { deadlineAtMs: nowMs },
    { deadlineAtMs: nowMs + 2_200 },
    { deadlineAtMs: nowMs + 2_201 },
    { deadlineAtMs: nowMs + 3_000_000 },
    { budgetMicroUsd: 0 },
    { budgetMicroUsd: 100_000 },
    { budgetMicroUsd: 100_001 },
    { budgetMicroUsd: 9_000_000_000 },
  ],
  interrupt: () => [
    { attempt: 1, noticeMs: null },
    { attempt: 1, noticeMs: 0 },
    { attempt: 1, noticeMs: -1 },
    { attempt: 1, noticeMs: 0.5 },
    { attempt: 2, noticeMs: 1 },
  ],
  approve: () => [{ quote: 'another' }],
  reject: () => [{}],
  decidePurchase: () => [{ kind: 'bought' }, { kind: 'not-bought' }, { kind: 'perhaps' }],
  extendReservation: (nowMs) => [
    { durationMs: 1, upfrontMaxMicroUsd: 1 },
    { endsAtMs: nowMs, upfrontMaxMicroUsd: 1 },
    { durationMs: 1, endsAtMs: nowMs, upfrontMaxMicroUsd: 1 },
    { durationMs: 0, upfrontMaxMicroUsd: 1 },
    { durationMs: 1, upfrontMaxMicroUsd: 0 },
    { upfrontMaxMicroUsd: 1 },
  ],
  resizeReservation: (nowMs) => [
    {},
    { share: 'nobody' },
    { share: 'owner' },
    { count: 1 },
    { count: 0 },
    { count: 1.5 },
    { endsAtMs: nowMs },
    { spendMaxMicroUsd: 0 },
    { spendMaxMicroUsd: 6_000_000_000 },
  ],
  splitReservation: () => [
    { count: 1, newId: 'res-new' },
    { count: 0, newId: 'res-new' },
    { count: 7, newId: 'res-new' },
    { count: 8, newId: 'res-new' },
    { count: 1, newId: 'res-test' },
    { count: 1, newId: 'No id' },
  ],
  release: () => [{ chargeMaxMicroUsd: 0 }, { chargeMaxMicroUsd: -1 }, {}],
  approveModel: () => [{}],
  rejectModel: () => [{}],
  skipRun: () => [{}],
  startNow: () => [{}],
}

type Validator = ((request: object) => void) | undefined

function refusals(validators: Map<string, { validator?: Validator }>): object {
  const tried = [...validators].flatMap(([name, { validator }]) =>
    (REQUESTS[name]?.(Date.now()) ?? []).map((request, index) => [
      `${name} ${index + 1}`,
      refusalOf(validator, request),
    ]),
  )
  return Object.fromEntries(tried) as object
}

function refusalOf(validator: Validator, request: object): string {
  try {
    validator?.(request)
    return 'accepted'
  } catch (error) {
    return (error as Error).message
  }
}

/** As JSON: the page in the Web UI, the descriptions of all handlers, and the answers to all queries. */
function views(): string {
  const { currentDetails, queryHandlers, signalHandlers, updateHandlers } = getActivator()
  const queries = [...queryHandlers].filter(([name]) => !name.startsWith('__'))
  const handlers = [...queries, ...signalHandlers, ...updateHandlers]
  return JSON.stringify({
    page: currentDetails,
    refusals: refusals(updateHandlers),
    handlers: Object.fromEntries(handlers.map(([name, { description }]) => [name, description])),
    ...Object.fromEntries(queries.map(([name, { handler }]) => [name, handler()])),
  })
}

export const interceptors: WorkflowInterceptorsFactory = () => {
  const { capture } = proxySinks<CaptureSinks>()
  return {
    internals: [
      {
        concludeActivation(input, next) {
          const output = next(input)
          capture.activation([...output.commands], views())
          return output
        },
      },
    ],
  }
}
