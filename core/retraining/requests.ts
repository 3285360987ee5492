/** Requests of people to a run of a schedule: its updates, and the commands that send them. */
/** Update: promote the model that waits for approval. @experimental */
export type ApproveModelUpdate = SkipRunUpdate

/** Update: keep the old model. @experimental */
export interface RejectModelUpdate extends SkipRunUpdate {
  reason?: string
}

/** Update that ends the run before its training begins. @experimental */
export interface SkipRunUpdate {
  by: string
}

export const APPROVE_MODEL_UPDATE = 'approveModel'
export const REJECT_MODEL_UPDATE = 'rejectModel'
export const SKIP_RUN_UPDATE = 'skipRun'
/** Update without arguments: do not wait for the window. */
export const START_NOW_UPDATE = 'startNow'

/** Explains how to answer a run that asks whether its model goes into production. */
export function howToApprove({ schedule, run }: { schedule: string; run?: { id: string } }): string {
  const which = `${schedule}${run === undefined ? '' : ` --run ${run.id}`}`
  return `Put it into production: \`crucible schedule approve ${which}\`. Keep the old one: \`crucible schedule reject ${which}\`.`
}
