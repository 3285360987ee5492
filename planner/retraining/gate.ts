import type { GateVerdict } from '../../core/retraining/run'
import type { Gate, PromotedModel } from '../../core/retraining/retraining'

export interface Measured {
  /** Null if the evaluation reported no such number. */
  value: number | null
  production: number | null
  productionFrom: GateVerdict['productionFrom']
}

/** Whether a new model may replace the one in production. A value that is not a number never passes. */
export function judge(gate: Gate, { value, production, productionFrom }: Measured): GateVerdict {
  const { metric } = gate
  const verdict = (isPassed: boolean, message: string): GateVerdict => ({
    isPassed,
    message,
    metric,
    value: usable(value),
    production: usable(production),
    productionFrom,
  })
  if (usable(value) === null) return verdict(false, `The evaluation reported no usable ${metric}.`)
  const new_ = value!
  if (gate.limit !== undefined && isWorse(gate, new_, gate.limit))
    return verdict(false, `${metric} is ${new_}, beyond the limit of ${gate.limit}.`)
  if (productionFrom === 'unknown') {
    const message = `${metric} is ${new_}, and the model in production has no ${metric} to compare with.`
    return { ...verdict(false, message), isUndecided: true }
  }
  if (usable(production) === null)
    return verdict(true, `${metric} is ${new_}; no model in production to compare with.`)
  const bound = boundOf(gate, production!)
  const where = productionFrom === 'recorded' ? ', as recorded' : ''
  const figures = `${metric} is ${new_}, in production ${production}${where}`
  if (isWorse(gate, new_, bound))
    return verdict(false, `${figures}: worse than the tolerance allows (${rounded(bound)}).`)
  const isBetter = isWorse(gate, production!, new_)
  return verdict(
    true,
    `${figures}: ${isBetter ? 'better' : new_ === production ? 'equal' : 'worse, within the tolerance'}.`,
  )
}

/**
 * Why a model must not replace the one in production without a person: it was trained on older data, because its run was made up for or came
 * late. Undefined if it may.
 */
export function olderThanProduction(
  window: PromotedModel['window'],
  production: Pick<PromotedModel, 'seq' | 'window'> | undefined,
): string | undefined {
  if (production === undefined || window.end >= production.window.end) return undefined
  const { seq } = production
  return `The new model was trained on data up to ${window.end}, and version ${seq} in production on newer data, up to ${production.window.end}.`
}

/** Returns why a model must not replace another one than it was judged against: another run has promoted meanwhile. Undefined if it may. */
export function otherThanJudged(
  judgedAgainst: number,
  production: Pick<PromotedModel, 'seq' | 'run'> | undefined,
): string | undefined {
  if (production === undefined || production.seq === judgedAgainst) return undefined
  const { seq, run } = production
  return `The run ${run} has put version ${seq} into production since the new model was judged.`
}

/** NaN and infinities come from programs that diverged. */
function usable(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null
}

function isWorse({ better }: Gate, value: number, than: number): boolean {
  return better === 'lower' ? value > than : value < than
}

/** The worst acceptable value. A share is of the amount of the value, so that it also means something for negative ones. */
function boundOf({ better, tolerance }: Gate, production: number): number {
  const slack = tolerance.kind === 'absolute' ? tolerance.value : tolerance.value * Math.abs(production)
  return better === 'lower' ? production + slack : production - slack
}

function rounded(value: number): number {
  return Number(value.toPrecision(6))
}
