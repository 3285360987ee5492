/** Reads job files and flags, for callers of `submit`. */
import { defined } from '../../core/defined'
import type { JobSpec } from '../../core/job/job'
import { MICRO_USD_PER_USD, type MicroUsd } from '../../core/money/money'
import { formatBackendChoice } from '../../core/offer'
import type { Range, ResourceRequest } from '../../core/resources'
import { SECOND_MS } from '../../core/time/time'

export {
  parseJobFile,
  parseJobObject,
  peerProblem,
  writtenFields,
  type Job,
  type JobOrProblems,
} from '../../intake/job-file'
export { slurmScriptOf, type PeerFile } from '../../intake/peers'
export { formatProblem, type Path, type Problem } from '../../intake/problem'
export { parseBackendChoice } from '../../intake/written'
export { parseWhatIf, WHAT_IF_FORMS } from '../../intake/what-if'
export { parseDeadline, parseDuration, parseMoney, UnitError } from '../../intake/units'

/** The fields of a job file, as far as they have values. @experimental */
export type JobFields = Record<string, unknown>

/**
 * A spec as the fields of the job file that would produce it, to be changed and read again. A deadline becomes the time that was
 * left until it.
 *
 * @param submittedAtMs when the spec's deadline was counted from
 * @experimental
 */
export function fieldsOf(spec: JobSpec, submittedAtMs: number): JobFields {
  const { resources, checkpoint, deadlineAtMs, budgetMicroUsd, durationMs, durationOn, backends } = spec
  return defined({
    name: spec.name,
    run: spec.run,
    setup: spec.setup,
    shell: spec.shell,
    image: spec.image,
    image_login: spec.imageLogin && { username: spec.imageLogin.username, password: spec.imageLogin.secret },
    inputs: spec.inputs,
    resources: defined({
      gpus: range(resources.gpus),
      gpu_memory: gpuMemory(resources),
      accelerators: resources.accelerators,
      instance_type: resources.instanceTypes,
      cpus: range(resources.cpus),
      memory: range(resources.memoryGiB, 'GiB'),
      disk: range(resources.diskGiB, 'GiB'),
      disk_throughput: resources.diskMibPerSecond,
      disk_iops: resources.diskIops,
      shm: resources.shmGiB === undefined ? undefined : `${resources.shmGiB}GiB`,
    }),
    duration: durationOn === undefined ? duration(durationMs) : `${duration(durationMs)} on ${durationOn}`,
    work_family: spec.workFamily,
    interruptible: spec.isInterruptible,
    isolation: spec.isolation,
    accept: spec.accepts,
    checkpoint: defined({
      directory: checkpoint.directory,
      every: duration(checkpoint.everyMs),
      size: checkpoint.sizeBytes === undefined ? undefined : `${checkpoint.sizeBytes / 2 ** 30}GiB`,
      complete: checkpoint.complete,
      include: checkpoint.include,
      exclude: checkpoint.exclude,
      quiet: duration(checkpoint.quietMs),
      signal: checkpoint.signal,
      keep: checkpoint.keep,
    }),
    on_rebalance: spec.onRebalance,
    deadline: deadlineAtMs === undefined ? undefined : duration(deadlineAtMs - submittedAtMs),
    budget: dollars(budgetMicroUsd),
    backends: backends.map(formatBackendChoice),
    regions: spec.regions,
    reservation: spec.reservation,
    reserved: spec.usesReserved,
    max_price: dollars(spec.priceMaxMicroUsdPerHour),
    optimize: spec.optimize,
    retries: spec.retries,
    env: spec.env,
    secrets: spec.secrets,
    outputs: spec.outputs,
    require_outputs: spec.requiresOutputs,
    tags: spec.tags,
  })
}

function dollars(microUsd: MicroUsd | undefined): string | undefined {
  return microUsd === undefined ? undefined : `$${(microUsd / MICRO_USD_PER_USD).toFixed(6)}`
}

/** Converts bounds on GPU memory; both are sizes from a label, or both are reported sizes. */
function gpuMemory({ gpuMemoryGb, gpuMemoryGiB }: ResourceRequest): string | undefined {
  if (gpuMemoryGb === undefined || gpuMemoryGiB === undefined)
    return range(gpuMemoryGb, 'GB') ?? range(gpuMemoryGiB, 'GiB')
  const [from, to] =
    gpuMemoryGb.min === undefined
      ? [`${gpuMemoryGiB.min}GiB`, `${gpuMemoryGb.max}GB`]
      : [`${gpuMemoryGb.min}GB`, `${gpuMemoryGiB.max}GiB`]
  return `${from}..${to}`
}

function range(bounds: Range | undefined, unit = ''): string | undefined {
  if (bounds === undefined) return undefined
  const { min, max } = bounds
  return `${min === undefined ? '' : `${min}${unit}`}..${max === undefined ? '' : `${max}${unit}`}`
}

function duration(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${(ms / SECOND_MS).toFixed(3)}s`
}
