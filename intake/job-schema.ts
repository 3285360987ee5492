/** The job file as a schema: what may be written, in the words that editors and docs/reference/job-file.md show. */
import { z } from 'zod'
import { CHECKPOINTS_KEPT, CHECKPOINTS_KEPT_AT_END, SAVE_SIGNALS } from '../core/checkpoint'
import { REBALANCE_ANSWERS } from '../core/documents'
import { OBJECTIVES } from '../core/job'
import {
  checkpointPattern,
  command,
  envName,
  image,
  innerPath,
  jobName,
  keptCount,
  LIMITS,
  registryUser,
  retryCount,
} from './fields'
import { DEFAULTS } from './job-spec'
import * as as from './written'

/** What other schedulers call a field, and what it is called here. */
export const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['cmd', 'run'],
  ['command', 'run'],
  ['commands', 'run'],
  ['entrypoint', 'run'],
  ['args', 'script'],
  ['docker', 'image'],
  ['container', 'image'],
  ['environment', 'env'],
  ['envs', 'env'],
  ['working_dir', 'workdir'],
  ['directory', 'workdir'],
  ['file_mounts', 'inputs'],
  ['data', 'inputs'],
  ['artifacts', 'outputs'],
  ['timeout', 'deadline'],
  ['max_duration', 'deadline'],
  ['price', 'budget'],
  ['max_cost', 'budget'],
  ['spot', 'interruptible'],
  ['use_spot', 'interruptible'],
  ['preemptible', 'interruptible'],
  ['retry', 'retries'],
  ['provider', 'backends'],
  ['cloud', 'backends'],
  ['gpu', 'resources.gpus'],
  ['gpu_type', 'resources.accelerators'],
  ['accelerator', 'resources.accelerators'],
  ['vcpus', 'resources.cpus'],
  ['ram', 'resources.memory'],
  ['vram', 'resources.gpu_memory'],
])

/** A field with what editors show of it; the examples are values as the file would have them. */
function field<T extends z.ZodType>(schema: T, description: string, ...examples: unknown[]): T {
  return schema.meta({ description, examples })
}

const resources = z.strictObject({
  gpus: field(
    as.count(LIMITS.gpus, 'exactly'),
    'How many GPUs. A single number means exactly that many. Asking for `gpu_memory` or `accelerators` means at least one.',
    1,
    '2..8',
  ).exactOptional(),
  gpu_memory: field(
    as.labelledRange,
    'Memory of each GPU. GB is the size on the label of the card, GiB what its driver reports.',
    '24GB',
    '24GB..80GB',
    '16GB+',
  ).exactOptional(),
  accelerators: field(
    as.oneOrMore(as.accelerator, LIMITS.accelerators),
    'The GPU models that will do, in any spelling; any will when left out.',
    ['A10G', 'L4'],
    'H100',
  ).exactOptional(),
  cpus: field(
    as.count(LIMITS.cpus, 'at least'),
    'CPU cores. A single number means at least that many.',
    8,
    '4..16',
  ).exactOptional(),
  memory: field(
    as.sizeRange,
    'Memory of the machine. A single size means at least that much.',
    '32GB',
    '16GB..64GB',
  ).exactOptional(),
  disk: field(as.sizeRange, 'Room on the disk of the machine.', '200GB').exactOptional(),
  shm: field(
    as.size,
    'Shared memory (`/dev/shm`) of the container, for data loaders with many processes.',
    '8GiB',
  ).exactOptional(),
})

const patterns = as.oneOrMore(checkpointPattern, LIMITS.checkpointPatterns)

const checkpoint = z.strictObject({
  directory: field(
    innerPath,
    'Where the program writes checkpoints, relative to the working directory. Without it, a folder outside, whose path is in `CRUCIBLE_CHECKPOINT_DIR`.',
    'checkpoints',
  ).exactOptional(),
  every: field(
    as.pace,
    'Keep a checkpoint at most this often; each one is kept when left out. Before the machine stops, the newest is kept in any case.',
    '10m',
  ).exactOptional(),
  size: field(
    as.size,
    'How big one is, about: `plan` then warns where it cannot be saved between the notice of an interruption and its end. Without it the last checkpoints of a job of this name tell.',
    '12GB',
  ).exactOptional(),
  complete: field(
    patterns,
    'Files that prove a checkpoint complete, such as one that the program writes last: each pattern must match a file, relative to the checkpoint directory or to the folder of the one checkpoint. Without it the formats of the files tell, where they can.',
    'trainer_state.json',
    ['model.safetensors', '*/DONE'],
  ).exactOptional(),
  include: field(
    patterns,
    'Patterns, relative to the checkpoint directory, of what belongs to a checkpoint; everything when left out. A folder stands for all that is in it.',
    ['checkpoint-*', 'latest'],
  ).exactOptional(),
  exclude: field(
    patterns,
    'Patterns, relative to the checkpoint directory, of what never belongs to a checkpoint.',
    ['cache', '*.tmp.*'],
  ).exactOptional(),
  quiet: field(
    as.span,
    'How long nothing may change in files that cannot prove themselves complete until they are taken as a provisional checkpoint; a setting of the worker when left out.',
    '10s',
  ).exactOptional(),
  signal: field(
    z.enum(SAVE_SIGNALS),
    'The signal that makes the program save before its machine goes. With another one than `SIGTERM`, which also ends the program, SIGTERM follows once the checkpoint is saved.',
    'SIGUSR1',
  ).exactOptional(),
  keep: field(
    keptCount,
    `How many of the newest complete checkpoints stay; older ones are deleted as new ones come. When left out, ${CHECKPOINTS_KEPT} stay while the job runs and ${CHECKPOINTS_KEPT_AT_END} once it has ended.`,
    5,
  ).exactOptional(),
})

const imageLogin = z.strictObject({
  username: field(registryUser, 'The name of the user who logs in.', 'team-robot'),
  password: field(
    envName,
    'Name of an environment variable whose value, a password or a token, is taken from where you submit. It travels as `secrets` do; the program does not get it.',
    'REGISTRY_TOKEN',
  ),
})

const retries = z.strictObject({
  failures: field(
    retryCount,
    'How often a program that failed is started again, from its newest checkpoint.',
    1,
  ).default(DEFAULTS.retryFailures),
  interruptions: field(retryCount, 'How often the job may lose its machine and go on elsewhere.', 20).default(
    DEFAULTS.retryInterruptions,
  ),
})

/** The fields of the job file, in the order in which a person would explain them. */
export const jobFile = z
  .strictObject({
    name: field(
      jobName,
      "What lists call the job; need not be unique. The file's own name when left out.",
      'char-lm',
    ).exactOptional(),
    run: field(
      command,
      'The command, run by `sh` in the working directory; several lines are a script.',
      'python3 train.py --epochs 3',
    ).exactOptional(),
    script: field(
      as.script,
      'Short for `run: python3 ...`: a Python file with its arguments.',
      'train.py --lr 3',
    ).exactOptional(),
    setup: field(
      command,
      'A command run before it on every machine, timed by itself. Its failure is never taken for one of the program.',
      'pip install -r requirements.txt',
    ).exactOptional(),
    workdir: field(
      z.union([z.string().min(1).max(LIMITS.pathLength), z.literal(false)], 'must be a folder, or false'),
      'The folder that is packed and sent along, relative to the job file; `false` sends nothing.',
      'src',
    ).default(DEFAULTS.workdir),
    image: field(
      image,
      'A container image to run in. Without one the command runs on the machine itself.',
      'pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime',
    ).exactOptional(),
    image_login: field(
      imageLogin,
      "The login to the image's registry, where it wants one. Amazon's own (ECR) is asked with the role of the machine.",
      { username: 'team-robot', password: 'REGISTRY_TOKEN' },
    ).exactOptional(),
    inputs: field(
      as.inputs,
      'Files that every machine fetches before the program starts: where each is put, and where it comes from (`file://`, `https://`, `s3://`).',
      { 'data/train.bin': 'https://example.com/train.bin' },
      ['https://example.com/vocab.txt'],
    ).exactOptional(),
    resources: field(resources, 'What the machine must have. Everything left out is "whatever there is".', {
      gpus: 1,
      gpu_memory: '24GB',
    }).exactOptional(),
    duration: field(
      as.span,
      'Your estimate of the whole training time, for comparing prices.',
      '6h',
      '1d12h',
    ).exactOptional(),
    interruptible: field(
      z.boolean(),
      'Whether the job may run on capacity that can be taken back (spot). It goes on from its newest checkpoint then.',
      true,
    ).default(DEFAULTS.interruptible),
    checkpoint: field(checkpoint, 'What a checkpoint of the program is, and which are kept.', {
      every: '10m',
    }).exactOptional(),
    on_rebalance: field(
      z.enum(REBALANCE_ANSWERS),
      'What to do when the provider says that it may soon take the machine back: `save` a checkpoint and go on (when left out), `move` to another machine, or `ignore` it.',
      'move',
    ).exactOptional(),
    deadline: field(
      as.deadline,
      'By when it must be over: an instant with its zone, or a duration from now. The machine is off by then.',
      '2027-01-31T18:00:00Z',
      '36h',
    ).exactOptional(),
    budget: field(
      as.budget,
      'What it may cost in all, in US dollars. The machine is off before more is spent. With duration, a job that cannot fit is not begun.',
      '$25',
    ).exactOptional(),
    backends: field(
      as.oneOrMore(as.backendChoice, LIMITS.backends),
      'Where it may run: names of backends, or of one capacity type of them. Everywhere that is configured, when left out.',
      ['local', 'local:spot'],
    ).exactOptional(),
    optimize: field(z.enum(OBJECTIVES), 'What to prefer where several offers would do.', 'time').default(
      DEFAULTS.optimize,
    ),
    retries: field(retries, 'How much the job may go through.', { failures: 1 }).prefault({}),
    env: field(
      as.env,
      'Environment variables of the program. They are kept with the job, so nothing secret.',
      {
        OMP_NUM_THREADS: '4',
      },
    ).exactOptional(),
    secrets: field(
      as.oneOrMore(envName, LIMITS.secrets),
      'Names of environment variables whose values are taken from where you submit. The values travel sealed and are never kept with the job.',
      ['HF_TOKEN'],
    ).exactOptional(),
    outputs: field(
      as.oneOrMore(innerPath, LIMITS.outputs),
      'Paths or globs below the working directory that are kept as artifacts, beside everything in `CRUCIBLE_OUTPUT_DIR`.',
      ['weights.bin', 'figures/*.png'],
    ).exactOptional(),
  })
  .meta({
    title: 'Crucible job file',
    oneOf: [{ required: ['run'] }, { required: ['script'] }],
  })

/** The job file's JSON Schema, for editors. */
export function jobFileJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(jobFile, {
    io: 'input',
    target: 'draft-7',
    // Examples of fields that are read into something else are left out by the library; ours are as written.
    override: ({ zodSchema, jsonSchema }) => {
      const examples = z.globalRegistry.get(zodSchema)?.examples
      if (Array.isArray(examples)) jsonSchema.examples = examples
    },
  })
}
