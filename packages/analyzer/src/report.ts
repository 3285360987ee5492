/** The answer of an analysis: a document of a stable form. */
import { z } from 'zod'
import { WORK_FAMILIES } from '../../../core/speed'

/** Raised when a reader of the document must change. */
export const ANALYSIS_VERSION = 1

const evidence = z.object({
  file: z.string(),
  /** Starts at 1. */
  line: z.int().min(1),
  text: z.string(),
})

const finding = <T extends z.ZodType>(value: T): z.ZodType<Finding<z.output<T>>> =>
  z.object({
    /** Value; `null` if it is unknown. */
    value: value.nullable(),
    /** Confidence from 0 to 1: the share of such findings that are right. */
    confidence: z.number().min(0).max(1),
    evidence: z.array(evidence),
    /** Facts that would make it certain. */
    missing: z.array(z.string()),
    /** The option, or the call, that does it. */
    how: z
      .object({ option: z.string().nullable(), call: z.string().nullable(), isGiven: z.boolean() })
      .nullable(),
  }) as unknown as z.ZodType<Finding<z.output<T>>>

const cli = z.object({
  style: z.string(),
  options: z.array(
    z.object({
      name: z.string(),
      default: z.unknown(),
      given: z.unknown(),
      isRequired: z.boolean(),
      file: z.string(),
      line: z.int().min(1),
    }),
  ),
})

const gibibytes = { lowGiB: z.number().min(0), highGiB: z.number().min(0) }

/** Memory of each GPU; without a GPU, of the machine. */
const memory = z.object({
  ...gibibytes,
  components: z.object({
    weights: z.object(gibibytes),
    gradients: z.object(gibibytes),
    optimizer: z.object(gibibytes),
    activations: z.object(gibibytes),
    /** CUDA and its libraries. */
    context: z.object(gibibytes),
  }),
})

const runTime = z.object({
  class: z.enum(['minutes', 'hours', 'days', 'weeks']),
  lowHours: z.number().min(0),
  highHours: z.number().min(0),
  /** The GPUs that the hours are for. */
  accelerator: z.string(),
  gpus: z.int().min(1),
})

/** Document of `crucible analyze --json`. @internal Tests check the printed document. */
export const analysisDocument = z.object({
  version: z.literal(ANALYSIS_VERSION),
  /** The script, relative to the project's folder; `null` if none was found. */
  entry: z.string().nullable(),
  args: z.array(z.string()),
  launcher: z.enum(['python', 'torchrun', 'accelerate', 'deepspeed']),
  /** Python files that were read. */
  files: z.array(z.string()),
  linesRead: z.int().min(0),
  /** `training` if the script trains a model, `not-training` if not, `unreadable` if that is unknown. */
  kind: z.enum(['training', 'not-training', 'unreadable']),
  /** Whether the program reads `CRUCIBLE_CHECKPOINT_DIR` or `CRUCIBLE_RESUME_FROM`. */
  knowsCrucible: z.boolean(),
  /** Obstacles to reading parts of the project. */
  obstacles: z.array(z.object({ file: z.string(), line: z.int().min(1), message: z.string() })),
  findings: z.object({
    framework: finding(z.array(z.string())),
    cli: finding(cli),
    saveKind: finding(z.enum(['periodic', 'flag', 'final_only', 'none'])),
    savesCheckpoints: finding(z.boolean()),
    saveEvery: finding(z.string()),
    canResume: finding(z.enum(['yes', 'partial', 'no'])),
    /** Folder in which it saves while it trains, relative to its working directory. */
    checkpointDirectory: finding(z.string()),
    /** Words for the shell that make it continue, such as `--resume "$CRUCIBLE_RESUME_FROM"`. */
    resumeOption: finding(z.string()),
    gpuUse: finding(z.enum(['hard', 'practical', 'optional', 'none'])),
    needsGpu: finding(z.boolean()),
    multiGpu: finding(z.enum(['yes', 'optional', 'no'])),
    multiGpuStyle: finding(z.array(z.string())),
    /** Number of GPUs on which the command starts the program. */
    gpuCount: finding(z.int().min(1)),
    precision: finding(z.enum(['fp32', 'fp16', 'bf16', 'fp16-mixed', 'bf16-mixed'])),
    batchSize: finding(z.int().min(1)),
    epochs: finding(z.number().min(0)),
    steps: finding(z.number().min(0)),
    gradientCheckpointing: finding(z.boolean()),
    cannotRun: finding(z.array(z.enum(['tpu', 'ipu', 'never-ending', 'interactive']))),
    data: finding(z.array(z.string())),
    model: finding(z.array(z.string())),
    modelParams: finding(z.int().min(1)),
    memory: finding(memory),
    runTime: finding(runTime),
    /** Family of work, which decides how much faster one GPU type trains it than another. */
    workFamily: finding(z.enum(WORK_FAMILIES)),
  }),
})

export type Analysis = z.infer<typeof analysisDocument>
export type Findings = Analysis['findings']
export type FindingName = keyof Findings
export type Evidence = z.infer<typeof evidence>

export interface Finding<T> {
  value: T | null
  confidence: number
  evidence: Evidence[]
  missing: string[]
  how: How | null
}

export interface How {
  option: string | null
  call: string | null
  isGiven: boolean
}

/** Confidence of a certain rule; the tests measure it. */
export const CERTAIN = 0.95
export const LIKELY = 0.8
export const POSSIBLE = 0.6

/** Whether only the lower end of a range is worth a word. */
export const isOnlyLeast = ({ confidence }: Finding<unknown>): boolean => confidence < POSSIBLE

/** A finding with its evidence. */
export function found<T>(
  value: T,
  {
    confidence = CERTAIN,
    evidence: places = [],
    missing = [],
    how = null,
  }: Partial<Omit<Finding<T>, 'value'>> = {},
): Finding<T> {
  return { value, confidence, evidence: places.slice(0, EVIDENCE_MAX), missing, how }
}

/** Limit on places of evidence; more do not help a reader. */
const EVIDENCE_MAX = 4

export function notKnown<T>(...missing: string[]): Finding<T> {
  return { value: null, confidence: 0, evidence: [], missing, how: null }
}

/** Findings that are all unknown, for one reason. */
export function nothingFound(reason: string): Findings {
  const nothing = (): Finding<never> => notKnown<never>(reason)
  return {
    framework: nothing(),
    cli: nothing(),
    saveKind: nothing(),
    savesCheckpoints: nothing(),
    saveEvery: nothing(),
    canResume: nothing(),
    checkpointDirectory: nothing(),
    resumeOption: nothing(),
    gpuUse: nothing(),
    needsGpu: nothing(),
    multiGpu: nothing(),
    multiGpuStyle: nothing(),
    gpuCount: nothing(),
    precision: nothing(),
    batchSize: nothing(),
    epochs: nothing(),
    steps: nothing(),
    gradientCheckpointing: nothing(),
    cannotRun: nothing(),
    data: nothing(),
    model: nothing(),
    modelParams: nothing(),
    memory: nothing(),
    runTime: nothing(),
    workFamily: nothing(),
  }
}

/** The answer about a program that could not be followed to its end: nothing is known, for the given reason. */
export function couldNotTell(file: string, reason: string): Analysis {
  return {
    version: ANALYSIS_VERSION,
    entry: null,
    args: [],
    launcher: 'python',
    files: [],
    linesRead: 0,
    kind: 'unreadable',
    knowsCrucible: false,
    obstacles: [{ file, line: 1, message: reason }],
    findings: nothingFound(reason),
  }
}
