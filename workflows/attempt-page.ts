import { defineQuery, setCurrentDetails, setHandler } from '@temporalio/workflow'
import type { DrainReason } from '../core/documents'
import type { Failure } from '../core/failure'
import type { MachineHandle } from '../core/handle'
import { STATUS_QUERY, type AttemptInput, type AttemptOutcome, type AttemptStatus } from '../core/messages'
import { formatUsd } from '../core/money'
import { setAttributes } from './attributes'

const statusQuery = defineQuery<AttemptStatus>(STATUS_QUERY)

/** What an attempt shows of itself: a query, search attributes, and its page in the Temporal UI. */
export class AttemptPage {
  private readonly status: AttemptStatus = { state: 'provisioning', reason: 'launching', handle: null }
  private remark = ''

  constructor(private readonly input: AttemptInput) {
    setHandler(statusQuery, () => this.status, { description: 'State of the attempt.' })
    this.show()
  }

  running(handle: MachineHandle): void {
    this.status.handle = handle
    this.move('running', 'training')
  }

  stopping(reason: DrainReason): void {
    this.move('stopping', reason)
  }

  over(outcome: AttemptOutcome): AttemptOutcome {
    const { end } = outcome.settlement
    this.status.state =
      end.kind === 'failed' && end.failure.class === 'interrupted' ? 'interrupted' : end.kind
    this.status.reason =
      end.kind === 'failed' ? end.failure.class : end.kind === 'stopped' ? end.by : 'completed'
    setAttributes({ state: this.status.state, reason: this.status.reason })
    this.show()
    return outcome
  }

  trouble({ message }: Failure): void {
    this.remark = message
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
    const lines = [
      `**${state}** (${reason})`,
      '',
      `- asked for: ${order.backend} ${order.capacityType}, at most ${formatUsd(order.priceMaxMicroUsdPerHour)}/h`,
      ...(realised === undefined
        ? []
        : [
            `- got: ${realised.capacityType} ${realised.type} ${realised.place}, ${formatUsd(realised.priceMicroUsdPerHour)}/h (\`${handle!.id}\`)`,
          ]),
      ...(this.remark === '' ? [] : ['', `**Trouble:** ${this.remark}`]),
    ]
    setCurrentDetails(lines.join('\n'))
  }
}
