import { findAccelerator } from '../../core/accelerators'
import type { OwnSpeeds } from '../../core/job/own-speeds'
import { paceOf } from '../../core/job/pace'
import type { RecordEntry } from '../../core/job/record'
import type { MachineShape } from '../../core/resources'
import type { OwnRatio, WorkFamily } from '../../core/speed'

/**
 * Least number of beats for a pace. The runner reads the step of a program between two beats, so a pace over many of them is exact to a few
 * percent.
 */
const BEATS_MIN = 20
/** Fewer steps may all be slow ones: the first compile, warm up, or evaluate. */
const STEPS_MIN = 20

/** Returns how fast a job ran on each accelerator type, by its record; `undefined` if it was measured on one type only. */
export function ownSpeedsOf(jobId: string, entries: readonly RecordEntry[]): OwnSpeeds | undefined {
  const family = entries.find((entry) => entry.kind === 'resolved')?.data.spec.workFamily ?? null
  const measured = entries.flatMap((entry) => measuredOf(entry, entries))
  // A different number of GPUs has a different pace.
  const gpus = measured.at(-1)?.gpus
  const paces = new Map<string, OwnSpeeds['paces'][number]>()
  for (const { accelerator, steps, ms, ...shape } of measured) {
    if (shape.gpus !== gpus) continue
    const before = paces.get(accelerator) ?? { accelerator, steps: 0, ms: 0 }
    paces.set(accelerator, { accelerator, steps: before.steps + steps, ms: before.ms + ms })
  }
  return paces.size < 2 ? undefined : { jobId, family, paces: [...paces.values()] }
}

function measuredOf(
  settled: RecordEntry,
  entries: readonly RecordEntry[],
): (OwnSpeeds['paces'][number] & { gpus: number })[] {
  if (settled.kind !== 'settled') return []
  const order = entries.find((entry) => entry.kind === 'launched' && entry.attempt === settled.attempt)
  if (order?.kind !== 'launched') return []
  const { progress, restoredFrom, phases, times, handle } = settled.data
  // Without the first step, the time would include the program's start.
  if (times?.firstStep == null) return []
  const { firstStep, firstStepAtMs } = times
  const pace = paceOf({
    progress: progress ?? null,
    phases,
    firstStep,
    firstStepAtMs,
    restoredFrom: restoredFrom || undefined,
  })
  if (pace === null || pace.steps < STEPS_MIN || pace.ms < BEATS_MIN * order.data.runner.beatMs) return []
  const shape = order.data.offers.find(({ type }) => type === handle?.realised.type)?.shape
  const accelerator = shape && nameOf(shape)
  return accelerator === undefined ? [] : [{ accelerator, gpus: shape!.gpus, ...pace }]
}

function nameOf({ accelerator }: MachineShape): string | undefined {
  return accelerator === undefined ? undefined : findAccelerator(accelerator)?.name
}

/** Returns the ratios that jobs of a family measured, or all of them for work of an unknown family, in the order of the types' names. */
export function ownRatios(all: readonly OwnSpeeds[], family: WorkFamily | undefined): OwnRatio[] {
  const sums = new Map<string, { log: number; jobs: number }>()
  for (const one of all) {
    if (family !== undefined && one.family !== family) continue
    const [than, ...others] = [...one.paces].sort((a, b) => (a.accelerator < b.accelerator ? -1 : 1))
    for (const { accelerator, steps, ms } of others) {
      const key = JSON.stringify([accelerator, than!.accelerator])
      const sum = sums.get(key) ?? { log: 0, jobs: 0 }
      sums.set(key, { log: sum.log + Math.log((steps / ms) * (than!.ms / than!.steps)), jobs: sum.jobs + 1 })
    }
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { log, jobs }]) => {
      const [accelerator, than] = JSON.parse(key) as [string, string]
      return { accelerator, than, factor: Number(Math.exp(log / jobs).toPrecision(4)), jobs }
    })
}
