/** The schema of the job file, with the texts that editors and docs/reference/job-file.md show. */
import { z } from 'zod'
import { CHECKPOINTS_KEPT, CHECKPOINTS_KEPT_AT_END, SAVE_SIGNALS } from '../core/job/checkpoint'
import { REBALANCE_ANSWERS } from '../core/documents'
import { ACCEPTANCES, ISOLATION_DEFAULT, OBJECTIVES } from '../core/job/job'
import { ISOLATIONS } from '../core/offer'
import { SPEED_REFERENCE, WORK_FAMILIES } from '../core/speed'
import {
  checkpointPattern,
  command,
  diskIops,
  diskMibPerSecond,
  envName,
  image,
  shell,
  innerPath,
  instanceTypeName,
  outputPattern,
  regionName,
  reservationName,
  jobName,
  keptCount,
  LIMITS,
  registryUser,
  retryCount,
} from './fields'
import { DEFAULTS } from './job-spec'
import { field, withExamples } from './schema-field'
import * as as from './written'

const resources = z.strictObject({
  gpus: field(
    as.count(LIMITS.gpus, 'exactly'),
    'How many GPUs; a single number is exact. `gpu_memory` or `accelerators` alone mean at least one.',
    1,
    '2..8',
  ).optional(),
  gpu_memory: field(
    as.labelledRange,
    'Memory of each GPU: GB as on its label, GiB as its driver reports.',
    '24GB',
    '24GB..80GB',
    '16GB+',
  ).optional(),
  accelerators: field(
    as.oneOrMore(as.accelerator, LIMITS.accelerators),
    'Acceptable GPU models, in any spelling (default: any).',
    ['A10G', 'L4'],
    'H100',
  ).optional(),
  instance_type: field(
    as.oneOrMore(instanceTypeName, LIMITS.instanceTypes),
    'Acceptable machine types, as `plan` and their provider name them (default: any).',
    'p5.48xlarge',
    ['g5.xlarge', 'g6.xlarge'],
  ).optional(),
  cpus: field(
    as.count(LIMITS.cpus, 'at least'),
    'CPU cores; a single number means at least that many.',
    8,
    '4..16',
  ).optional(),
  memory: field(
    as.sizeRange,
    'Memory of the machine; a single size means at least that much.',
    '32GB',
    '16GB..64GB',
  ).optional(),
  disk: field(as.sizeRange, 'Disk space of the machine.', '200GB').optional(),
  disk_throughput: field(
    diskMibPerSecond,
    'MiB/s of the disk, only on EC2 (default: as the job and the machine use it).',
    500,
  ).optional(),
  disk_iops: field(diskIops, 'Operations per second of the disk, only on EC2.', 6_000).optional(),
  shm: field(as.size, 'Shared memory (`/dev/shm`) of the container.', '8GiB').optional(),
})

const patterns = as.oneOrMore(checkpointPattern, LIMITS.checkpointPatterns)

const checkpoint = z.strictObject({
  directory: field(
    innerPath,
    'Where the program writes checkpoints, below the working directory (default: `CRUCIBLE_CHECKPOINT_DIR`).',
    'checkpoints',
  ).optional(),
  every: field(
    as.pace,
    'Shortest interval between kept checkpoints (default: keep each); the last one is always kept.',
    '10m',
  ).optional(),
  size: field(
    as.size,
    'Size of a checkpoint; `plan` warns if it cannot be saved within an interruption notice (default: as of earlier jobs of this name).',
    '12GB',
  ).optional(),
  complete: field(
    patterns,
    "Files that prove a checkpoint complete. Each pattern must match, relative to the checkpoint directory or the checkpoint's folder (default: proof by file formats).",
    'trainer_state.json',
    ['model.safetensors', '*/DONE'],
  ).optional(),
  include: field(
    patterns,
    'Patterns, relative to the checkpoint directory, of the files of a checkpoint (default: everything).',
    ['checkpoint-*', 'latest'],
  ).optional(),
  exclude: field(patterns, 'Patterns of files that never belong to a checkpoint, like `include`.', [
    'cache',
    '*.tmp.*',
  ]).optional(),
  quiet: field(
    as.span,
    'Time without changes after which unproven files count as a provisional checkpoint (default: `CRUCIBLE_CHECKPOINT_QUIET`).',
    '10s',
  ).optional(),
  signal: field(
    z.enum(SAVE_SIGNALS),
    'Signal that makes the program save before its machine ends; SIGTERM follows once the checkpoint is saved.',
    'SIGUSR1',
  ).optional(),
  keep: field(
    keptCount,
    `Number of newest complete checkpoints to keep (default: ${CHECKPOINTS_KEPT}, after the job's end ${CHECKPOINTS_KEPT_AT_END}).`,
    5,
  ).optional(),
})

const imageLogin = z.strictObject({
  username: field(registryUser, 'User name for the registry.', 'team-robot'),
  password: field(
    envName,
    'Environment variable with a password or token, treated like `secrets`; the program does not get it.',
    'REGISTRY_TOKEN',
  ),
})

const retries = z.strictObject({
  failures: field(retryCount, 'How often a failed program resumes from its newest checkpoint.', 1).default(
    DEFAULTS.retryFailures,
  ),
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
      'Name in lists; need not be unique (default: the name of the file).',
      'char-lm',
    ).optional(),
    run: field(
      command,
      'Command or script, run by `shell` in the working directory.',
      'python3 train.py --epochs 3',
    ).optional(),
    script: field(
      as.script,
      'Short for `run: python3 ...`: a Python file and its arguments.',
      'train.py --lr 3',
    ).optional(),
    setup: field(
      command,
      'Command to run first on every machine; its failure does not count as a program failure.',
      'pip install -r requirements.txt',
    ).optional(),
    shell: field(
      shell,
      'Program that runs `run` and `setup`, with its options (default: `bash -eo pipefail`, so that any failing line or part of a pipe fails the job; `sh -e` without bash). With `sh`, only the last line counts.',
      'sh',
    ).optional(),
    workdir: field(
      z.union([z.string().min(1).max(LIMITS.pathLength), z.literal(false)], 'must be a folder, or false'),
      'Folder to send along, relative to the job file; `false` sends nothing.',
      'src',
    ).default(DEFAULTS.workdir),
    image: field(
      image,
      'Container image to run in (default: none, on the machine itself).',
      'pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime',
    ).optional(),
    image_login: field(
      imageLogin,
      "Login for the image's registry, if required. Amazon ECR uses the machine's role.",
      { username: 'team-robot', password: 'REGISTRY_TOKEN' },
    ).optional(),
    inputs: field(
      as.inputs,
      'Files to download before the program starts: target path and source of each (`file://`, `https://`, `s3://`).',
      { 'data/train.bin': 'https://example.com/train.bin' },
      ['https://example.com/vocab.txt'],
    ).optional(),
    resources: field(resources, 'Requirements on the machine (default: none).', {
      gpus: 1,
      gpu_memory: '24GB',
    }).optional(),
    duration: field(
      as.trainingTime,
      `Your estimate of the whole training time, and the GPU type that it refers to (without one: the first of \`accelerators\`, otherwise ${SPEED_REFERENCE}). Used to compare offers.`,
      '6h on A100',
      '1d12h',
    ).optional(),
    work_family: field(
      z.enum(WORK_FAMILIES),
      'What kind of training it is, which decides how much faster one GPU type is than another: `recurrent` includes speech, `fp32` all training without mixed precision (default: as the program shows, otherwise any).',
      'transformer',
    ).optional(),
    interruptible: field(
      z.boolean(),
      'Whether the job may run on spot capacity and resume from checkpoints.',
      true,
    ).default(DEFAULTS.interruptible),
    isolation: field(
      z.enum(ISOLATIONS),
      `Hardware that the job may run on: \`dedicated\` only, also \`shared\` with other customers, or also \`community\`, from private owners (default: ${ISOLATION_DEFAULT}).`,
      'dedicated',
    ).optional(),
    accept: field(
      as.oneOrMore(z.enum(ACCEPTANCES), ACCEPTANCES.length),
      'Risks to accept: `preemptible-on-demand` (on-demand machines that can be interrupted), `billed-until-terminated` (with a budget: machines whose billing ends only at our call).',
      'billed-until-terminated',
    ).optional(),
    checkpoint: field(checkpoint, 'Checkpoints of the program, and which to keep.', {
      every: '10m',
    }).optional(),
    on_rebalance: field(
      z.enum(REBALANCE_ANSWERS),
      'At a rebalance recommendation: `save` a checkpoint (default), `move` to another machine, or `ignore` it.',
      'move',
    ).optional(),
    deadline: field(
      as.deadline,
      'Time with its zone, or duration from now, by which the machine is off.',
      '2027-01-31T18:00:00Z',
      '36h',
    ).optional(),
    budget: field(
      as.budget,
      'Total cost limit in US dollars; the machine is off before it. With `duration`, a job that cannot fit does not start.',
      '$25',
    ).optional(),
    backends: field(
      as.oneOrMore(as.backendChoice, LIMITS.backends),
      'Allowed backends, or capacity types of them (default: all configured).',
      ['local', 'local:spot'],
    ).optional(),
    regions: field(
      as.oneOrMore(regionName, LIMITS.regions),
      'Allowed Regions or zones, as their providers name them; places without one are excluded (default: any).',
      ['us-east-1', 'eu-west-1'],
    ).optional(),
    reservation: field(
      reservationName,
      "The only reservation to run in, for whose places the job waits: its id in `crucible reservations`, or the provider's.",
      'res-ranker',
    ).optional(),
    reserved: field(
      z.boolean(),
      'Whether it may run in capacity that was reserved (default: as that is shared).',
      false,
    ).optional(),
    max_price: field(
      as.budget,
      'The most that an hour of the machine may cost, in US dollars.',
      '$3.50',
    ).optional(),
    optimize: field(
      z.enum([...OBJECTIVES, 'speed']),
      'What to optimize for if several offers fit; `balanced` weighs a percent of cost like a percent of time, `speed` means `time`.',
      'time',
    ).default(DEFAULTS.optimize),
    retries: field(retries, 'Limits on failures and interruptions.', { failures: 1 }).prefault({}),
    env: field(as.env, 'Environment variables of the program; for secret values use `secrets`.', {
      OMP_NUM_THREADS: '4',
    }).optional(),
    secrets: field(
      as.oneOrMore(envName, LIMITS.secrets),
      'Environment variables whose values are read and encrypted when you submit.',
      ['HF_TOKEN'],
    ).optional(),
    outputs: field(
      as.oneOrMore(outputPattern, LIMITS.outputs),
      'Paths or globs below the working directory to keep as artifacts, in addition to all of `CRUCIBLE_OUTPUT_DIR`.',
      ['weights.bin', 'figures/*.png'],
    ).optional(),
    require_outputs: field(
      z.boolean(),
      'Whether a program that ends without one of its `outputs` has failed; otherwise that is only reported.',
      true,
    ).optional(),
    tags: field(
      as.tags,
      'Your own tags on its EC2 machines and disks, and in `crucible costs --by tag:KEY`; those of `CRUCIBLE_EC2_TAGS` prevail.',
      { project: 'ranker' },
    ).optional(),
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
    override: withExamples,
  })
}
