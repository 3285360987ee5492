/** The normalised spec: the input of the job workflow, whatever its source. */
import { z } from 'zod'
import { DISK_IOPS, IOPS_PER_GIB, IOPS_PER_MIB_PER_SECOND } from '../core/disk-speed'
import { SAVE_SIGNALS } from '../core/job/checkpoint'
import { REBALANCE_ANSWERS } from '../core/documents'
import { ACCEPTANCES, OBJECTIVES, type JobSpec } from '../core/job/job'
import { CAPACITY_TYPES, ISOLATIONS, type BackendChoice } from '../core/offer'
import { wantsGpu, type Range, type ResourceRequest } from '../core/resources'
import { WORK_FAMILIES } from '../core/speed'
import { faultsOf } from './faults'
import {
  LIMITS,
  backendName,
  checkpointPattern,
  command,
  diskIops,
  diskMibPerSecond,
  instanceTypeName,
  envName,
  envOf,
  envValue,
  image,
  innerPath,
  regionName,
  reservationName,
  jobName,
  keptCount,
  outputs,
  registryUser,
  retryCount,
  secrets,
  shell,
  source,
  tagsOf,
} from './fields'
import { formatPath, type Fault, type Problem } from './problem'
import { quote } from './units'

/** Defaults of a job; every other default is "none". */
export const DEFAULTS = {
  workdir: '.',
  interruptible: false,
  optimize: 'cost',
  /** A failed program usually fails again, and each time costs money. */
  retryFailures: 0,
  /** A lost machine says nothing about the job; the limit only stops an endless loop. */
  retryInterruptions: 100,
} as const

const bound = (max: number): z.ZodType<number> => z.number().min(0).max(max)

function range(max: number): z.ZodType<Range> {
  return z
    .strictObject({ min: bound(max).optional(), max: bound(max).optional() })
    .refine(
      ({ min, max }) => min === undefined || max === undefined || min <= max,
      'has its bounds in the wrong order',
    )
}

const resources: z.ZodType<ResourceRequest> = z.strictObject({
  gpus: range(LIMITS.gpus).optional(),
  gpuMemoryGb: range(LIMITS.sizeGiB).optional(),
  gpuMemoryGiB: range(LIMITS.sizeGiB).optional(),
  accelerators: z.array(z.string().min(1)).max(LIMITS.accelerators).optional(),
  instanceTypes: z.array(instanceTypeName).min(1).max(LIMITS.instanceTypes).optional(),
  cpus: range(LIMITS.cpus).optional(),
  memoryGiB: range(LIMITS.sizeGiB).optional(),
  diskGiB: range(LIMITS.sizeGiB).optional(),
  diskMibPerSecond: diskMibPerSecond.optional(),
  diskIops: diskIops.optional(),
  shmGiB: bound(LIMITS.sizeGiB).optional(),
})

const backendChoice: z.ZodType<BackendChoice> = z.strictObject({
  backend: backendName,
  capacityType: z.enum(CAPACITY_TYPES).optional(),
})

const checkpointPatterns = z.array(checkpointPattern).min(1).max(LIMITS.checkpointPatterns)

const durationMs = z.int().min(0).max(LIMITS.durationMs)

const jobSpec = z.strictObject({
  name: jobName,
  run: command,
  setup: command.optional(),
  shell: shell.optional(),
  image: image.optional(),
  imageLogin: z.strictObject({ username: registryUser, secret: envName }).optional(),
  inputs: z
    .array(z.strictObject({ source, path: innerPath }))
    .max(LIMITS.inputs)
    .default([]),
  resources: resources.default({}),
  durationMs: durationMs.optional(),
  durationOn: z.string().min(1).optional(),
  workFamily: z.enum(WORK_FAMILIES).optional(),
  isInterruptible: z.boolean().default(DEFAULTS.interruptible),
  isolation: z.enum(ISOLATIONS).optional(),
  accepts: z.array(z.enum(ACCEPTANCES)).max(ACCEPTANCES.length).optional(),
  checkpoint: z
    .strictObject({
      directory: innerPath.optional(),
      everyMs: durationMs.optional(),
      sizeBytes: z
        .int()
        .min(0)
        .max(LIMITS.sizeGiB * 2 ** 30)
        .optional(),
      complete: checkpointPatterns.optional(),
      include: checkpointPatterns.optional(),
      exclude: checkpointPatterns.optional(),
      quietMs: durationMs.optional(),
      signal: z.enum(SAVE_SIGNALS).optional(),
      keep: keptCount.optional(),
    })
    .default({}),
  onRebalance: z.enum(REBALANCE_ANSWERS).optional(),
  deadlineAtMs: z.int().min(0).optional(),
  budgetMicroUsd: z.int().min(1).max(LIMITS.budgetMicroUsd).optional(),
  backends: z.array(backendChoice).max(LIMITS.backends).default([]),
  regions: z.array(regionName).min(1).max(LIMITS.regions).optional(),
  reservation: reservationName.optional(),
  usesReserved: z.boolean().optional(),
  priceMaxMicroUsdPerHour: z.int().min(1).max(LIMITS.budgetMicroUsd).optional(),
  optimize: z.enum(OBJECTIVES).default(DEFAULTS.optimize),
  retries: z
    .strictObject({
      failures: retryCount.default(DEFAULTS.retryFailures),
      interruptions: retryCount.default(DEFAULTS.retryInterruptions),
    })
    .prefault({}),
  env: envOf(envValue).default({}),
  secrets: secrets.default([]),
  outputs: outputs.default([]),
  requiresOutputs: z.boolean().optional(),
  tags: tagsOf(z.string()).optional(),
  inferred: z
    .array(
      z.strictObject({
        field: z.string().min(1),
        value: z.string(),
        reason: z.string(),
        from: z.string().nullable(),
        confidence: z.number().min(0).max(1),
      }),
    )
    .optional(),
})

/**
 * Checks a normalised spec, whatever its source: a client, or a person who started the workflow by hand. Missing fields get their
 * defaults. A deadline in the past is not a problem here: the job then ends at its deadline.
 */
export function checkJobSpec(value: unknown): { spec: JobSpec } | { problems: Problem[] } {
  const parsed = jobSpec.safeParse(value)
  const faults = parsed.success
    ? relationFaults(parsed.data)
    : faultsOf(parsed.error.issues, { value, schema: jobSpec, synonyms: new Map() })
  if (parsed.success && faults.length === 0) return { spec: parsed.data }
  return {
    problems: faults.map(({ path, message, remedy = 'correct the input of the workflow' }) => ({
      path: formatPath(path),
      message,
      remedy,
    })),
  }
}

/** Returns conflicts between fields that are valid alone. Paths are also those of the job file. */
export function relationFaults(spec: JobSpec): Fault[] {
  return [
    ...textFaults(spec, []),
    ...secretFaults(spec),
    ...loginFaults(spec),
    ...inputFaults(spec),
    ...checkpointFaults(spec),
    ...resourceFaults(spec.resources),
    ...reservedFaults(spec),
    ...sizeFaults(spec),
  ]
}

/** Half of a UTF-16 surrogate pair, which cannot be written as UTF-8: no machine could receive it. */
const HALF_CHARACTER = /\p{Surrogate}/u

function textFaults(value: unknown, path: (string | number)[]): Fault[] {
  if (typeof value === 'string') {
    if (!HALF_CHARACTER.test(value)) return []
    const message = 'has half of a character (a lone surrogate), which is not text'
    return [{ path, message, remedy: 'remove it, or write the whole character' }]
  }
  if (typeof value !== 'object' || value === null) return []
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([name, inner]) => {
    if (HALF_CHARACTER.test(name)) return textFaults(name, path)
    return textFaults(inner, [...path, isList ? Number(name) : name])
  })
}

/** Names that conventionally hold credentials, and prefixes of well-known tokens. */
const SECRET_NAME = /(?:API_?KEY|SECRET|SECRET_(?:ACCESS_)?KEY|PASSWORD|(?:ACCESS|AUTH|SESSION)_TOKEN)$/i
const SECRET_VALUE = /^(?:hf_|sk-|ghp_|github_pat_|glpat-|xox[abp]-)\w{8}|-----BEGIN [A-Z ]*PRIVATE KEY-----/

function secretFaults(spec: JobSpec): Fault[] {
  const doubled = spec.secrets.flatMap((name, index) => {
    const path = ['secrets', index]
    if (Object.hasOwn(spec.env, name))
      return [{ path, message: `names ${name}, which is also under env`, remedy: 'remove one of the two' }]
    const isRepeated = spec.secrets.indexOf(name) < index
    return isRepeated ? [{ path, message: `names ${name} a second time`, remedy: 'remove it' }] : []
  })
  const open = Object.entries(spec.env)
    .filter(([name, value]) => value !== '' && (SECRET_NAME.test(name) || SECRET_VALUE.test(value)))
    .map(([name]) => ({
      path: ['env', name],
      message: 'looks like a secret, but env is stored with the job in plain text',
      remedy: `remove it here and add ${name} to secrets`,
    }))
  return [...doubled, ...open]
}

function loginFaults({ image, imageLogin, env }: JobSpec): Fault[] {
  if (imageLogin === undefined) return []
  if (image === undefined)
    return [{ path: ['image_login'], message: 'is set without an image', remedy: 'add image, or remove it' }]
  if (!Object.hasOwn(env, imageLogin.secret)) return []
  const message = `names ${imageLogin.secret}, which is also under env and so stored with the job in plain text`
  return [{ path: ['image_login', 'password'], message, remedy: 'remove it from env' }]
}

function inputFaults({ inputs }: JobSpec): Fault[] {
  return inputs.flatMap(({ path }, index) => {
    const other = inputs.find(
      (input, at) => (at < index && input.path === path) || path.startsWith(`${input.path}/`),
    )
    if (other === undefined) return []
    const message =
      other.path === path ? `puts a second file at ${path}` : `is inside ${other.path}, which is a file`
    return [{ path: ['inputs', index, 'path'], message, remedy: 'choose another path' }]
  })
}

/** Excluding the proof of completeness would leave every checkpoint without proof. */
function checkpointFaults({ checkpoint: { complete = [], exclude = [] } }: JobSpec): Fault[] {
  return complete.flatMap((pattern, index) =>
    exclude.includes(pattern)
      ? [
          {
            path: ['checkpoint', 'complete', index],
            message: `${quote(pattern)} is also under exclude, so no checkpoint would ever be complete`,
            remedy: 'remove one of the two',
          },
        ]
      : [],
  )
}

function reservedFaults({ usesReserved, reservation, backends }: JobSpec): Fault[] {
  const field = backends.some(({ capacityType }) => capacityType === 'reserved') ? 'backends' : 'reservation'
  if (usesReserved !== false || (reservation === undefined && field === 'reservation')) return []
  return [
    {
      path: ['reserved'],
      message: `contradicts ${field}, which asks for reserved capacity`,
      remedy: 'remove one of the two',
    },
  ]
}

function resourceFaults(request: ResourceRequest): Fault[] {
  return [...gpuFaults(request), ...diskFaults(request)]
}

function diskFaults({ diskGiB, diskMibPerSecond: speed = 0, diskIops }: ResourceRequest): Fault[] {
  if (diskIops === undefined) return []
  const needed = speed * IOPS_PER_MIB_PER_SECOND
  if (diskIops < needed)
    return [
      {
        path: ['resources', 'disk_throughput'],
        message: `is ${speed} MiB/s, for which a disk needs ${needed} operations per second, but disk_iops is ${diskIops}`,
        remedy: `write disk_iops: ${needed}, or leave it out`,
      },
    ]
  const most = Math.max(DISK_IOPS.min, (diskGiB?.max ?? Infinity) * IOPS_PER_GIB)
  if (diskIops <= most) return []
  return [
    {
      path: ['resources', 'disk_iops'],
      message: `is ${diskIops}, but a disk of at most ${diskGiB!.max} GiB has at most ${most}`,
      remedy: `write at most ${most}, or allow a larger disk`,
    },
  ]
}

function gpuFaults(request: ResourceRequest): Fault[] {
  if (wantsGpu(request) || request.gpus?.max !== 0) return []
  const asked =
    request.gpuMemoryGb !== undefined || request.gpuMemoryGiB !== undefined
      ? 'GPU memory'
      : request.accelerators?.length
        ? 'an accelerator'
        : undefined
  if (asked === undefined) return []
  return [
    {
      path: ['resources', 'gpus'],
      message: `is 0, but ${asked} is requested`,
      remedy: 'remove one of the two',
    },
  ]
}

function sizeFaults(spec: JobSpec): Fault[] {
  const bytes = new TextEncoder().encode(JSON.stringify(spec)).length
  if (bytes <= LIMITS.specBytes) return []
  return [
    {
      path: [],
      message: `the job has ${bytes} bytes (maximum ${LIMITS.specBytes})`,
      remedy: 'put long commands and values into files of the working directory',
    },
  ]
}
