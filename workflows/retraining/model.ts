import { condition, workflowInfo } from '@temporalio/workflow'
import { defined, picked } from '../../core/defined'
import { failureFrom, type Failure } from '../../core/failure'
import type { GateVerdict, PromotionTask, RetrainState, RunTask } from '../../core/retraining/run'
import type { ModelRef } from '../../core/retraining/retraining'
import { formatDuration } from '../../core/time/time'
import { forever, kept } from '../forever'
import { decide, retraining } from './activities'
import { runPart } from './jobs'
import { giveBack } from './release'
import type { Trained } from './training'
import type { RetrainRun } from './run'

/** How a run ends. */
export interface RunEnd {
  state: Extract<RetrainState, 'promoted' | 'trained' | 'kept' | 'failed' | 'skipped' | 'cancelled'>
  message: string
}

type Production = NonNullable<Awaited<ReturnType<typeof retraining.productionOf>>>

/** Takes a trained model to its end: the gate, a person if one is asked, the user's command, the pointer. */
export async function judgeAndPromote(run: RetrainRun, trained: Trained): Promise<RunEnd> {
  const { evaluation, promotion } = run.input.spec
  const production =
    promotion === undefined
      ? null
      : await forever(
          () => retraining.productionOf({ model: promotion.model, window: run.dates.window }),
          run,
        )
  if (production?.older !== undefined && promotion?.isAsked === false)
    return { state: 'kept', message: keptBecause(`${production.older} ${HOW_TO_PROMOTE}`, production) }
  if (evaluation !== undefined) {
    run.move('evaluating', 'Evaluating the new model.')
    const verdict = await evaluate(run, trained, production)
    if (run.stop !== undefined) return run.stop
    run.update({ verdict })
    if (!verdict.isPassed && !(verdict.isUndecided === true && promotion?.isAsked === true)) {
      const how = verdict.isUndecided === true ? ` ${HOW_TO_PROMOTE}` : ''
      return { state: 'kept', message: keptBecause(`${verdict.message}${how}`, production) }
    }
  }
  if (promotion === undefined)
    return { state: 'trained', message: 'The model is trained; the file has no promotion.' }
  if (promotion.isAsked) {
    const { verdict } = run.status
    const doubt = verdict?.isUndecided === true ? verdict.message : undefined
    // A person may take days.
    await giveBack(run)
    const refusal = await approval(run, promotion.askMs, production?.older ?? doubt)
    if (run.stop !== undefined) return run.stop
    if (refusal !== undefined) return { state: 'kept', message: keptBecause(refusal, production) }
  }
  return promote(run, trained, production)
}

function keptBecause(message: string, production: Production | null): string {
  const stays =
    production === null
      ? 'There is no model in production.'
      : `Version ${production.promoted.seq} stays in production.`
  return `${message} ${stays} The new model's checkpoint is kept.`
}

async function evaluate(
  run: RetrainRun,
  { model, source }: Trained,
  production: Production | null,
): Promise<GateVerdict> {
  const { evaluation } = run.input.spec
  const gate = picked(evaluation!, ['metric', 'better', 'tolerance', 'limit'])
  const how = evaluation!.production
  const models = { model, production: production?.promoted }
  const measure = async (
    part: 'evaluation' | 'production',
    from: Trained['source'],
    of: object,
  ): Promise<number | string> => {
    const end = await runPart(run, { part, source: from, ...models, ...of })
    if (!end.isSucceeded)
      return `The ${part === 'evaluation' ? 'evaluation' : 'evaluation of the model in production'} failed: ${end.message}`
    const { jobId } = end
    const attempts = end.result?.attempts ?? 1
    const value = await forever(
      () => retraining.readMetric({ ...run.task(), jobId, attempts, metric: gate.metric }),
      run,
    )
    return (
      value ??
      `The evaluation did not report ${gate.metric}: it must print a JSON object with it, or write metrics.json.`
    )
  }
  const value = await measure('evaluation', source, {})
  if (typeof value === 'string') {
    const failed = { isPassed: false, message: value, metric: gate.metric, value: null, production: null }
    return { ...failed, productionFrom: 'none' }
  }
  const ask = (known: {
    production: number | null
    productionFrom: GateVerdict['productionFrom']
  }): Promise<GateVerdict> => decide(run, 'judgeModel', { ...run.task(), gate, value, ...known })
  if (production === null) return ask({ production: null, productionFrom: 'none' })
  if (how === 'rerun' && production.source !== null) {
    // It is measured as the evaluated model, not as the one to compare with.
    const again = await measure('production', production.source, { model: production.promoted })
    if (typeof again === 'number') return ask({ production: again, productionFrom: 'rerun' })
    run.warn(`${again} Its recorded metric is used.`)
  }
  const { metric } = production.promoted
  const isSame = metric?.name === gate.metric
  return ask({ production: isSame ? metric.value : null, productionFrom: isSame ? 'recorded' : 'unknown' })
}

const HOW_TO_PROMOTE = 'With `ask: true` under `promotion`, a person may promote it.'

/** Asks a person. Returns why the model is not promoted, if it is not. */
async function approval(run: RetrainRun, askMs: number, doubt?: string): Promise<string | undefined> {
  const waits = `The new model waits for approval, for ${formatDuration(askMs)}.`
  run.move('awaiting-approval', doubt === undefined ? waits : `${waits} ${doubt}`, Date.now() + askMs)
  run.tell()
  run.isAsking = true
  await condition(() => run.status.decision !== undefined || run.stop !== undefined, askMs, {
    summary: 'waiting for approval',
  })
  run.isAsking = false
  const { decision } = run.status
  if (decision === undefined) return `It was not approved within ${formatDuration(askMs)}.`
  if (decision.kind === 'approved') return undefined
  return `Rejected by ${decision.by}${decision.reason === undefined ? '' : `: ${decision.reason}`}.`
}

type PromotionFacts = Omit<PromotionTask, keyof RunTask>

/** Waits while another run promotes. A run that is stopped does not wait on: its end frees a claim that comes later. */
async function claim(
  run: RetrainRun,
  wish: PromotionFacts,
): Promise<Failure | Awaited<ReturnType<typeof retraining.claimPromotion>>> {
  const { workflowId } = workflowInfo()
  const task = { ...run.task(), ...wish, workflowId }
  const claiming = kept(orRefusal(run, () => retraining.claimPromotion(task)))
  await Promise.race([claiming, kept(condition(() => run.stop !== undefined))])
  return run.stop === undefined ? claiming : { production: null }
}

/** Returns the result, or the reason of a final refusal. */
function orRefusal<T>(run: RetrainRun, work: () => Promise<T>): Promise<T | Failure> {
  return forever(async () => {
    try {
      return await work()
    } catch (error) {
      const failure = failureFrom(error)
      if (failure.class !== 'invalid') throw error
      return failure
    }
  }, run)
}

async function promote(
  run: RetrainRun,
  { model, source }: Trained,
  production: Production | null,
): Promise<RunEnd> {
  const promotion = run.input.spec.promotion!
  run.move('promoting', 'Putting the new model into production.')
  const isApproved = promotion.isAsked ? (true as const) : undefined
  const judgedAgainst = production?.promoted.seq ?? 0
  const wish = { name: promotion.model, judgedAgainst, isApproved }
  // The claim precedes the command, because a refused model must not be published.
  const claimed = await claim(run, wish)
  if (run.stop !== undefined) return run.stop
  if ('class' in claimed) return { state: 'kept', message: keptBecause(claimed.message, production) }
  if (promotion.job !== undefined) {
    const replaced: { production?: ModelRef } = defined({ production: claimed.production ?? undefined })
    const end = await runPart(run, { part: 'promotion', source, model, ...replaced })
    // A published model is in production, even if the run was cancelled meanwhile.
    if (!end.isSucceeded)
      return (
        run.stop ?? {
          state: 'kept',
          message: keptBecause(`The promotion command failed: ${end.message}`, production),
        }
      )
  }
  const { verdict } = run.status
  const value = verdict?.value
  const metric = verdict === undefined || value == null ? undefined : { name: verdict.metric, value }
  const task = { ...run.task(), ...wish, model, metric }
  const promoted = await orRefusal(run, () => retraining.promoteModel(task))
  if ('class' in promoted) return { state: 'kept', message: keptBecause(promoted.message, production) }
  run.update({ promoted })
  const gate = verdict === undefined ? '' : ` ${verdict.message}`
  return {
    state: 'promoted',
    message: `Version ${promoted.seq} of ${promotion.model} is in production.${gate}`,
  }
}
