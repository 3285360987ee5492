/** The job file as a schema: what may be written, with the texts that editors and docs/reference/job-file.md show. */
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

/** Names of fields in other schedulers, and their names here. */
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

/** A field with what editors show about it; the examples are values as in the file. */
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
    'Acceptable GPU models, in any spelling (default: any).',
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
  disk: field(as.sizeRange, 'Disk space of the machine.', '200GB').exactOptional(),
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
    'Where the program writes checkpoints, relative to the working directory. Default: a folder outside it, whose path is in `CRUCIBLE_CHECKPOINT_DIR`.',
    'checkpoints',
  ).exactOptional(),
  every: field(
    as.pace,
    'Shortest interval between kept checkpoints (default: keep each one). The newest one before the machine stops is always kept.',
    '10m',
  ).exactOptional(),
  size: field(
    as.size,
    'Approximate size of a checkpoint, with which `plan` warns if it cannot be saved within an interruption notice. Default: the size of the last checkpoints of a job with this name.',
    '12GB',
  ).exactOptional(),
  complete: field(
    patterns,
    'Files that prove a checkpoint complete, such as one that the program writes last: each pattern must match a file, relative to the checkpoint directory or to the folder of the checkpoint. Default: the formats of the files, if they allow it.',
    'trainer_state.json',
    ['model.safetensors', '*/DONE'],
  ).exactOptional(),
  include: field(
    patterns,
    'Patterns, relative to the checkpoint directory, of the files of a checkpoint (default: everything). A folder includes all its files.',
    ['checkpoint-*', 'latest'],
  ).exactOptional(),
  exclude: field(
    patterns,
    'Patterns, relative to the checkpoint directory, of files that never belong to a checkpoint.',
    ['cache', '*.tmp.*'],
  ).exactOptional(),
  quiet: field(
    as.span,
    'Time without changes after which files without proof of completeness count as a provisional checkpoint (default: a setting of the worker).',
    '10s',
  ).exactOptional(),
  signal: field(
    z.enum(SAVE_SIGNALS),
    'Signal that makes the program save before its machine ends. If it is not `SIGTERM`, which also ends the program, SIGTERM follows once the checkpoint is saved.',
    'SIGUSR1',
  ).exactOptional(),
  keep: field(
    keptCount,
    `Number of newest complete checkpoints to keep; older ones are deleted. Default: ${CHECKPOINTS_KEPT} while the job runs and ${CHECKPOINTS_KEPT_AT_END} after its end.`,
    5,
  ).exactOptional(),
})

const imageLogin = z.strictObject({
  username: field(registryUser, 'User name for the registry.', 'team-robot'),
  password: field(
    envName,
    'Name of an environment variable whose value, a password or a token, is read when you submit. It is encrypted like `secrets`; the program does not get it.',
    'REGISTRY_TOKEN',
  ),
})

const retries = z.strictObject({
  failures: field(
    retryCount,
    'How often a failed program is restarted, from its newest checkpoint.',
    1,
  ).default(DEFAULTS.retryFailures),
  interruptions: field(
    retryCount,
    'How often the job may lose its machine and resume elsewhere.',
    20,
  ).default(DEFAULTS.retryInterruptions),
})

/** The fields of the job file, in a sensible order for explaining them. */
export const jobFile = z
  .strictObject({
    name: field(
      jobName,
      'Name of the job in lists; need not be unique (default: the name of the file).',
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
      'Command to run first on every machine, timed separately. A setup failure does not count as a program failure.',
      'pip install -r requirements.txt',
    ).exactOptional(),
    workdir: field(
      z.union([z.string().min(1).max(LIMITS.pathLength), z.literal(false)], 'must be a folder, or false'),
      'The folder to pack and send along, relative to the job file; `false` sends nothing.',
      'src',
    ).default(DEFAULTS.workdir),
    image: field(
      image,
      'A container image to run in. Without one the command runs on the machine itself.',
      'pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime',
    ).exactOptional(),
    image_login: field(
      imageLogin,
      "The login for the image's registry, if it requires one. Amazon ECR uses the role of the machine.",
      { username: 'team-robot', password: 'REGISTRY_TOKEN' },
    ).exactOptional(),
    inputs: field(
      as.inputs,
      'Files that every machine downloads before the program starts: target path and source of each (`file://`, `https://`, `s3://`).',
      { 'data/train.bin': 'https://example.com/train.bin' },
      ['https://example.com/vocab.txt'],
    ).exactOptional(),
    resources: field(resources, 'Requirements on the machine (default: none).', {
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
      'Whether the job may run on interruptible capacity (spot). After an interruption, it resumes from its newest checkpoint.',
      true,
    ).default(DEFAULTS.interruptible),
    checkpoint: field(checkpoint, 'The checkpoints of the program, and which of them to keep.', {
      every: '10m',
    }).exactOptional(),
    on_rebalance: field(
      z.enum(REBALANCE_ANSWERS),
      'What to do when the provider warns of an interruption (rebalance recommendation): `save` a checkpoint and continue (default), `move` to another machine, or `ignore` it.',
      'move',
    ).exactOptional(),
    deadline: field(
      as.deadline,
      'Deadline: a time with its zone, or a duration from now. The machine is off by then.',
      '2027-01-31T18:00:00Z',
      '36h',
    ).exactOptional(),
    budget: field(
      as.budget,
      'Total cost limit in US dollars. The machine is off before more is spent. With `duration`, a job that cannot fit does not start.',
      '$25',
    ).exactOptional(),
    backends: field(
      as.oneOrMore(as.backendChoice, LIMITS.backends),
      'Allowed backends, or single capacity types of them (default: all that are configured).',
      ['local', 'local:spot'],
    ).exactOptional(),
    optimize: field(z.enum(OBJECTIVES), 'What to optimize for if several offers fit.', 'time').default(
      DEFAULTS.optimize,
    ),
    retries: field(retries, 'Limits on failures and interruptions.', { failures: 1 }).prefault({}),
    env: field(
      as.env,
      'Environment variables of the program. They are stored with the job, so use `secrets` for secret values.',
      {
        OMP_NUM_THREADS: '4',
      },
    ).exactOptional(),
    secrets: field(
      as.oneOrMore(envName, LIMITS.secrets),
      'Names of environment variables whose values are read when you submit. The values are encrypted and never stored with the job.',
      ['HF_TOKEN'],
    ).exactOptional(),
    outputs: field(
      as.oneOrMore(innerPath, LIMITS.outputs),
      'Paths or globs below the working directory to keep as artifacts, in addition to everything in `CRUCIBLE_OUTPUT_DIR`.',
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
    // The library leaves out examples of fields that are converted to something else; ours are as written.
    override: ({ zodSchema, jsonSchema }) => {
      const examples = z.globalRegistry.get(zodSchema)?.examples
      if (Array.isArray(examples)) jsonSchema.examples = examples
    },
  })
}
