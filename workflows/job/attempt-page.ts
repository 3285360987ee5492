import { defineQuery, setCurrentDetails, setHandler } from '@temporalio/workflow'
import { stopReason } from '../../core/job/attempt-record'
import type { RunnerWarning } from '../../core/job/checkpoint'
import type { DrainReason } from '../../core/documents'
import type { Failure } from '../../core/failure'
import { expectedInWords } from '../../core/job/forecast'
import type { MachineHandle } from '../../core/handle'
import { STATUS_QUERY, type AttemptInput, type AttemptOutcome, type AttemptStatus } from '../../core/messages'
import type { MicroUsd } from '../../core/money/money'
import { nameInMarkdown } from '../../core/markdown'
import { formatDuration, formatInstant } from '../../core/time/time'
import { setAttributes } from '../attributes'
import { Retries } from '../forever'
import { headline, money, sentence, warningLines } from '../markdown'

const statusQuery = defineQuery<AttemptStatus>(STATUS_QUERY)

/** Views of an attempt: a query, search attributes, and its page in the Temporal UI. */
export class AttemptPage {
  readonly retries = new Retries()
  private readonly status: AttemptStatus = { state: 'provisioning', reason: 'launching', handle: null }
  private story = ''
  private remark = ''
  private warning = ''
  private costMicroUsd: MicroUsd | undefined

  constructor(private readonly input: AttemptInput) {
    setHandler(statusQuery, () => this.status, { description: 'State of the attempt.' })
    const { pause } = input
    if (pause !== undefined) {
      this.status.reason = `waits until ${formatInstant(Date.now() + pause.forMs)}`
      this.story = pause.message
    }
    this.show()
  }

  /** Marks the end of the pause: the order is sent. */
  ordering(): void {
    this.status.reason = 'launching'
    this.story = ''
    this.show()
  }

  /** The launch was accepted and waits for capacity. */
  queued(handle: MachineHandle): void {
    this.status.handle = handle
    const limit = formatDuration(this.input.order.runner.queueMs ?? 0)
    const since = formatInstant(handle.launchedAtMs)
    this.story = `In the provider's queue since ${since}, which costs nothing. After ${limit} another offer is tried.`
    this.move('provisioning', 'queued')
  }

  /** The machine left the queue. */
  begun(): void {
    this.story = ''
    this.move('provisioning', 'starting')
  }

  running(handle: MachineHandle): void {
    this.status.handle = handle
    this.move('running', 'training')
  }

  warn(warning: RunnerWarning | null): void {
    this.warning = warning?.text ?? ''
    this.show()
  }

  stopping(by: DrainReason): void {
    const reason = stopReason(by, this.input.order)
    if (reason === 'run-limit')
      this.story =
        "The machine nears the provider's limit on how long it runs: the job saves, and continues on another one."
    this.move('stopping', reason)
  }

  over(outcome: AttemptOutcome): AttemptOutcome {
    const { end, costMicroUsd } = outcome.settlement
    this.status.state =
      end.kind === 'failed' && end.failure.class === 'interrupted' ? 'interrupted' : end.kind
    this.status.reason =
      end.kind === 'failed'
        ? end.failure.class
        : end.kind === 'stopped'
          ? stopReason(end.by, this.input.order)
          : 'completed'
    this.story = end.kind === 'failed' ? end.failure.message : ''
    this.remark = ''
    this.costMicroUsd = costMicroUsd
    setAttributes({ state: this.status.state, reason: this.status.reason })
    this.show()
    return outcome
  }

  trouble(failure: Failure | undefined): void {
    this.remark = failure?.message ?? ''
    this.show()
  }

  private move(state: AttemptStatus['state'], reason: string): void {
    this.status.state = state
    this.status.reason = reason
    setAttributes({ state, reason })
    this.show()
  }

  private show(): void {
    const { order } = this.input
    const { state, reason, handle } = this.status
    const realised = handle?.realised
    const facts = [
      `requested: ${order.backend} ${order.capacityType}, at most ${money(order.priceMaxMicroUsdPerHour)} per hour`,
      ...(realised === undefined
        ? []
        : [
            `machine: ${nameInMarkdown(`${realised.capacityType} ${realised.type} ${realised.place}`)}, ${money(realised.priceMicroUsdPerHour)} per hour (\`${handle!.id}\`)`,
          ]),
      ...(order.expected === undefined ? [] : [`expected: ${sentence(expectedInWords(order.expected))}`]),
      ...(this.costMicroUsd === undefined ? [] : [`cost: ${money(this.costMicroUsd)}`]),
    ]
    const lines = [
      headline({ state, reason, text: this.story }),
      '',
      ...facts.map((fact) => `- ${fact}`),
      ...warningLines(this.warning),
      ...(this.remark === '' ? [] : ['', `**Trouble, retrying:** ${sentence(this.remark)}`]),
    ]
    setCurrentDetails(lines.join('\n'))
  }
}
