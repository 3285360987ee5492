import type { z } from 'zod'
import { defined } from '../core/defined'
import type { ImageLogin } from '../core/documents'
import type { JobSpec } from '../core/job/job'
import { faultsOf } from './faults'
import { nameFrom } from './fields'
import { jobFile } from './job-schema'
import { SYNONYMS } from './synonyms'
import { relationFaults } from './job-spec'
import { formatPath, type Fault, type Path, type Problem } from './problem'
import { problemsIn, wordsOf, writeField, PROBLEMS_MAX } from './problems'
import { peerFileOf, peerTextOf, type PeerFile } from './peers'
import { shellFaults } from './shell-text'
import { readYaml } from './yaml-text'

/** A job as written in its file. @public */
export interface Job {
  spec: JobSpec
  /** The folder to pack, relative to the job file; null to send nothing along. */
  workdir: string | null
}

/** @public */
export type JobOrProblems = { job: Job } | { problems: Problem[] }

/**
 * Reads a job file.
 *
 * @param options.fileName as the user named it, for problems and for the job's name
 * @param options.nowMs start of a deadline given as a duration
 * @public
 */
export function parseJobFile(text: string, options: { fileName: string; nowMs: number }): JobOrProblems {
  const { fileName: file, nowMs } = options
  const yaml = readYaml(text, ['env'])
  if ('faults' in yaml) {
    const peer = peerTextOf(text)
    if (peer !== undefined) return { problems: [{ file, ...peerProblem(peer) }] }
    return { problems: yaml.faults.map((fault) => ({ file, path: '', ...fault })) }
  }
  const read = readWritten(yaml.value, { nowMs, defaultName: nameFrom(stem(file)) })
  if ('job' in read) return read
  const peer = peerFileOf(yaml.value)
  if (peer !== undefined) return { problems: [{ file, ...peerProblem(peer) }] }
  return { problems: problemsIn(read.faults, { file, yaml, schema: jobFile }) }
}

/** A file of another program as one problem, with its keys as they are written here. */
export function peerProblem({ what, keys }: PeerFile): Pick<Problem, 'path' | 'message' | 'remedy'> {
  const remedy = keys.length === 0 ? 'write a job file' : `write a job file. There, ${keys.join('; ')}`
  return { path: '', message: `this is ${what}`, remedy }
}

/** Names of the fields that a job file writes; the others of its spec are defaults. */
export function writtenFields(text: string): string[] {
  const yaml = readYaml(text, ['env'])
  return 'faults' in yaml || yaml.value === null ? [] : Object.keys(yaml.value as object)
}

/**
 * Reads a job from an object with the fields of a job file, such as one made of command-line flags.
 * @param options.flagOf the flag that gave the value at a path, or `undefined` if it came from no flag; missing without flags
 * @param options.defaultName the job's name when the object has none
 * @param options.nowMs start of a deadline given as a duration
 * @public
 */
export function parseJobObject(
  value: Readonly<Record<string, unknown>>,
  options: {
    flagOf?: (path: readonly PropertyKey[]) => string | undefined
    defaultName: string
    nowMs: number
  },
): JobOrProblems {
  const { flagOf = () => undefined, defaultName, nowMs } = options
  const read = readWritten(value, { nowMs, defaultName: nameFrom(defaultName) })
  if ('job' in read) return read
  return {
    problems: read.faults.slice(0, PROBLEMS_MAX).map((fault) => {
      const flag = flagOf(fault.path)
      const write = (path: Path, example: unknown): string => {
        const one: unknown = Array.isArray(example) ? example[0] : example
        return flag !== undefined && typeof one === 'string'
          ? `${flag} ${quoted(one)}`
          : writeField(path, example)
      }
      return { flag, ...wordsOf(fault, { schema: jobFile, write }) }
    }),
  }
}

interface ReadOptions {
  nowMs: number
  defaultName: string
}

/** Reads a job that a person writes now: like `readJob`, with faults for what only a shell would replace. */
export function readWritten(value: unknown, options: ReadOptions): { job: Job } | { faults: Fault[] } {
  const read = readJob(value, options)
  const known = 'job' in read ? [] : read.faults
  const isKnown = ({ path }: Fault): boolean => known.some((one) => formatPath(one.path) === formatPath(path))
  const written = [...shellFaults(value), ...('job' in read ? sharedMemoryFaults(read.job.spec) : [])]
  const faults = [...known, ...written.filter((fault) => !isKnown(fault))]
  return faults.length === 0 ? read : { faults }
}

/** Reads the fields of a job file, also of one that was accepted earlier. Paths of faults are those of the fields. */
export function readJob(value: unknown, options: ReadOptions): { job: Job } | { faults: Fault[] } {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    const message = value === null ? 'the file is empty' : 'the file is not a mapping of fields to values'
    return {
      faults: [{ path: [], message, remedy: 'write at least script: train.py, or run: and a command' }],
    }
  }
  const missing = commandFaults(value as Record<string, unknown>)
  const parsed = jobFile.safeParse(value)
  if (!parsed.success) {
    const faults = faultsOf(parsed.error.issues, { value, schema: jobFile, synonyms: SYNONYMS })
    return { faults: [...(faults.some(isAboutCommand) ? [] : missing), ...faults] }
  }
  if (missing.length > 0) return { faults: missing }
  const job = jobOf(parsed.data, options)
  const faults = [...deadlineFaults(job.spec, options.nowMs), ...relationFaults(job.spec)]
  return faults.length === 0 ? { job } : { faults }
}

/** Only containers have a size of shared memory. */
function sharedMemoryFaults({ image, resources }: JobSpec): Fault[] {
  if (image !== undefined || resources.shmGiB === undefined) return []
  const message = 'is set without an image, and only containers have their own shared memory'
  return [{ path: ['resources', 'shm'], message, remedy: 'add image, or remove it' }]
}

/** Whether a problem already says that this field is the command under another name. */
function isAboutCommand({ remedy }: Fault): boolean {
  return remedy === 'did you mean run?' || remedy === 'did you mean script?'
}

/** Returns faults of the command. They are reported in addition to other problems, so they are checked before the schema. */
function commandFaults(value: Record<string, unknown>): Fault[] {
  if ('run' in value && 'script' in value) {
    return [
      {
        path: ['script'],
        isAboutName: true,
        message: 'is set together with run',
        remedy: 'keep one of the two',
      },
    ]
  }
  if ('run' in value || 'script' in value) return []
  return [
    { path: [], message: 'the job has no command', remedy: 'add script: train.py, or run: and a command' },
  ]
}

function deadlineFaults({ deadlineAtMs }: JobSpec, nowMs: number): Fault[] {
  if (deadlineAtMs === undefined || deadlineAtMs > nowMs) return []
  return [
    {
      path: ['deadline'],
      message: 'is in the past',
      remedy: 'write a later one, or a duration from now such as 36h',
    },
  ]
}

/** Returns the value as it is stored. */
function jobOf(file: z.output<typeof jobFile>, { nowMs, defaultName }: ReadOptions): Job {
  const { resources = {}, checkpoint = {}, deadline } = file
  const spec: JobSpec = {
    name: file.name ?? defaultName,
    run: file.run ?? file.script ?? '',
    setup: file.setup,
    shell: file.shell,
    image: file.image,
    imageLogin: file.image_login && loginOf(file.image_login),
    inputs: file.inputs ?? [],
    resources: defined({
      gpus: resources.gpus,
      gpuMemoryGb: resources.gpu_memory?.gb,
      gpuMemoryGiB: resources.gpu_memory?.gib,
      accelerators: resources.accelerators,
      instanceTypes: resources.instance_type,
      cpus: resources.cpus,
      memoryGiB: resources.memory,
      diskGiB: resources.disk,
      diskMibPerSecond: resources.disk_throughput,
      diskIops: resources.disk_iops,
      shmGiB: resources.shm,
    }),
    durationMs: file.duration?.ms,
    durationOn: file.duration?.on,
    workFamily: file.work_family,
    isInterruptible: file.interruptible,
    isolation: file.isolation,
    accepts: file.accept,
    checkpoint: defined({
      directory: checkpoint.directory,
      everyMs: checkpoint.every,
      sizeBytes: checkpoint.size && Math.round(checkpoint.size * 2 ** 30),
      complete: checkpoint.complete,
      include: checkpoint.include,
      exclude: checkpoint.exclude,
      quietMs: checkpoint.quiet,
      signal: checkpoint.signal,
      keep: checkpoint.keep,
    }),
    onRebalance: file.on_rebalance,
    deadlineAtMs: deadline && ('atMs' in deadline ? deadline.atMs : nowMs + deadline.afterMs),
    budgetMicroUsd: file.budget,
    backends: file.backends ?? [],
    regions: file.regions,
    reservation: file.reservation,
    usesReserved: file.reserved,
    priceMaxMicroUsdPerHour: file.max_price,
    optimize: file.optimize === 'speed' ? 'time' : file.optimize,
    retries: file.retries,
    env: file.env ?? {},
    secrets: file.secrets ?? [],
    outputs: file.outputs ?? [],
    requiresOutputs: file.require_outputs,
    tags: file.tags,
  }
  return { spec, workdir: file.workdir === false ? null : file.workdir }
}

function loginOf({ username, password }: { username: string; password: string }): ImageLogin {
  return { username, secret: password }
}

function quoted(text: string): string {
  return /[\s"'$]/.test(text) ? `'${text}'` : text
}

/** A file's name without folder and ending. */
function stem(fileName: string): string {
  const name = fileName.split(/[\\/]/).at(-1)!
  return name.replace(/\.[^.]+$/, '')
}
