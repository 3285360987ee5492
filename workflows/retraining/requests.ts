import { defineUpdate, setHandler } from '@temporalio/workflow'
import { ApplicationFailure } from '@temporalio/common'
import type { UpdateReceipt } from '../../core/messages'
import {
  APPROVE_MODEL_UPDATE,
  REJECT_MODEL_UPDATE,
  SKIP_RUN_UPDATE,
  START_NOW_UPDATE,
  type ApproveModelUpdate,
  type RejectModelUpdate,
  type SkipRunUpdate,
} from '../../core/retraining/requests'
import type { RetrainRun } from './run'

const approveUpdate = defineUpdate<UpdateReceipt, [ApproveModelUpdate]>(APPROVE_MODEL_UPDATE)
const rejectUpdate = defineUpdate<UpdateReceipt, [RejectModelUpdate]>(REJECT_MODEL_UPDATE)
const skipUpdate = defineUpdate<UpdateReceipt, [SkipRunUpdate]>(SKIP_RUN_UPDATE)
const startNowUpdate = defineUpdate<UpdateReceipt>(START_NOW_UPDATE)

/** Registers the requests that a person may send to a run, with their conditions. */
export function listen(run: RetrainRun): void {
  const awaitsApproval = (_: object): void => {
    if (run.status.state !== 'awaiting-approval')
      throw refused(`No model waits for approval: the run is ${run.status.state}.`)
    const { decision } = run.status
    if (decision !== undefined) throw refused(`The model was ${decision.kind} by ${decision.by} already.`)
    if (!run.isAsking) throw refused('The run is ending; no model awaits approval.')
  }
  const decide = (kind: 'approved' | 'rejected', { by, reason }: RejectModelUpdate): UpdateReceipt => {
    run.update({ decision: { kind, by, atMs: Date.now(), reason } })
    return { message: kind === 'approved' ? 'The model goes into production.' : 'The old model stays.' }
  }
  setHandler(approveUpdate, (update) => decide('approved', update), {
    validator: (update: ApproveModelUpdate) => awaitsApproval(update),
    description: 'Put the new model into production.',
  })
  setHandler(rejectUpdate, (update) => decide('rejected', update), {
    validator: (update: RejectModelUpdate) => awaitsApproval(update),
    description: 'Keep the model in production.',
  })
  setHandler(
    skipUpdate,
    ({ by }) => {
      run.stop ??= { state: 'skipped', message: `Skipped by ${by}.` }
      return { message: 'The run ends without a training.' }
    },
    {
      validator: (_: SkipRunUpdate) => {
        if (!run.isBeforeTraining) throw refused(`The training has begun: cancel its job instead.`)
      },
      description: 'End the run before its training.',
    },
  )
  setHandler(
    startNowUpdate,
    () => {
      run.isStartedNow = true
      return { message: 'The training begins without waiting for the window.' }
    },
    {
      validator: () => {
        if (run.stop !== undefined) throw refused(`The run is ending: ${run.stop.message}`)
        if (!run.isBeforeTraining) throw refused('The training has begun already.')
        if (run.placement === undefined) throw refused('No capacity is available yet.')
      },
      description: 'Do not wait for the window.',
    },
  )
}

function refused(message: string): ApplicationFailure {
  return ApplicationFailure.create({ type: 'invalid', message, nonRetryable: true })
}
