import { Option, type Command } from 'commander'
import type { JobFields, Path } from '../../client/job/file'
import { CrucibleError } from '../../client/errors'
import { REBALANCE_ANSWERS } from '../../core/documents'
import { ACCEPTANCES, OBJECTIVES } from '../../core/job/job'
import { ISOLATIONS } from '../../core/offer'
import { WORK_FAMILIES } from '../../core/speed'

/** A flag for a field of the job file. */
interface JobFlag {
  flags: string
  meaning: string
  /** The field that it sets. */
  path: readonly string[]
  /** Whether values of a repeated flag replace the file's or are added to them. */
  repeated?: 'replaces' | 'adds'
  read?: (text: string) => unknown
}

const FLAGS: readonly JobFlag[] = [
  { flags: '--name <name>', path: ['name'], meaning: 'name of the job in lists' },
  { flags: '--gpus <count>', path: ['resources', 'gpus'], meaning: 'GPUs, such as 1 or 2..8' },
  {
    flags: '--gpu-memory <size>',
    path: ['resources', 'gpu_memory'],
    meaning: 'memory of each GPU, such as 24GB..80GB',
  },
  {
    flags: '--accelerator <model>',
    path: ['resources', 'accelerators'],
    meaning: 'acceptable GPU model; may be repeated',
    repeated: 'replaces',
  },
  { flags: '--cpus <count>', path: ['resources', 'cpus'], meaning: 'CPU cores, such as 8 or 4..16' },
  { flags: '--memory <size>', path: ['resources', 'memory'], meaning: 'memory of the machine, such as 32GB' },
  { flags: '--disk <size>', path: ['resources', 'disk'], meaning: 'disk space, such as 200GB' },
  { flags: '--shm <size>', path: ['resources', 'shm'], meaning: 'shared memory of the container' },
  {
    flags: '--duration <duration>',
    path: ['duration'],
    meaning: 'estimated training time, such as 6h or 6h on A100',
  },
  {
    flags: '--work-family <family>',
    path: ['work_family'],
    meaning: `kind of training, for the speed of GPUs: ${WORK_FAMILIES.join(', ')}`,
  },
  {
    flags: '--checkpoint-dir <folder>',
    path: ['checkpoint', 'directory'],
    meaning: 'folder where the program saves',
  },
  {
    flags: '--checkpoint-every <duration>',
    path: ['checkpoint', 'every'],
    meaning: 'shortest interval between kept checkpoints',
  },
  {
    flags: '--on-rebalance <what>',
    path: ['on_rebalance'],
    meaning: `what to do when the provider warns of an interruption: ${REBALANCE_ANSWERS.join(', ')}`,
  },
  {
    flags: '--isolation <level>',
    path: ['isolation'],
    meaning: `whose hardware may run the job: ${ISOLATIONS.join(', ')}`,
  },
  {
    flags: '--accept <risk>',
    path: ['accept'],
    meaning: `risk to accept: ${ACCEPTANCES.join(', ')}; may be repeated`,
    repeated: 'replaces',
  },
  {
    flags: '--deadline <when>',
    path: ['deadline'],
    meaning: 'deadline: 36h from now, or a time with its zone',
  },
  { flags: '--budget <dollars>', path: ['budget'], meaning: 'total cost limit, such as 25' },
  {
    flags: '--backend <backend>',
    path: ['backends'],
    meaning: 'allowed backend, such as local or ec2:spot; may be repeated',
    repeated: 'replaces',
  },
  {
    flags: '--region <region>',
    path: ['regions'],
    meaning: 'allowed Region or zone, such as us-east-1; may be repeated',
    repeated: 'replaces',
  },
  {
    flags: '--reservation <id>',
    path: ['reservation'],
    meaning: 'the only reservation to run in, such as res-ranker',
  },
  {
    flags: '--max-price <dollars>',
    path: ['max_price'],
    meaning: 'the most that an hour may cost, such as 3.50',
  },
  {
    flags: '--optimize <what>',
    path: ['optimize'],
    meaning: `what to optimize for: ${OBJECTIVES.join(', ')}`,
  },
  {
    flags: '--max-failures <count>',
    path: ['retries', 'failures'],
    meaning: 'restart a failed program at most this many times',
    read: count,
  },
  {
    flags: '--max-interruptions <count>',
    path: ['retries', 'interruptions'],
    meaning: 'give up after losing this many machines',
    read: count,
  },
  { flags: '--image <image>', path: ['image'], meaning: 'container image to run in' },
  { flags: '--image-user <name>', path: ['image_login', 'username'], meaning: 'user name for its registry' },
  {
    flags: '--image-password <name>',
    path: ['image_login', 'password'],
    meaning: 'environment variable with the password or token for its registry',
  },
  { flags: '--setup <command>', path: ['setup'], meaning: 'command to run first on every machine' },
  {
    flags: '--shell <program>',
    path: ['shell'],
    meaning: 'program that runs the commands, such as "bash -eo pipefail"',
  },
  {
    flags: '--env <name=value>',
    path: ['env'],
    meaning: 'environment variable of the program; may be repeated',
    repeated: 'adds',
    read: variable,
  },
  {
    flags: '--secret <name>',
    path: ['secrets'],
    meaning: 'variable whose value is read here and sent encrypted; may be repeated',
    repeated: 'adds',
  },
  {
    flags: '--input <path=source>',
    path: ['inputs'],
    meaning: 'file that every machine downloads first; may be repeated',
    repeated: 'adds',
    read: input,
  },
  {
    flags: '--output <path>',
    path: ['outputs'],
    meaning: 'path or glob of artifacts to keep; may be repeated',
    repeated: 'adds',
  },
]

function count(text: string): unknown {
  return /^\d+$/.test(text) ? Number(text) : text
}

function variable(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new CrucibleError('usage', `--env "${text}" is not a name and a value.`, {
    hint: 'Write --env NAME=VALUE, or --secret NAME for a secret value.',
  })
}

/** Parses an input: `data.bin=https://...`, or a source alone, which keeps its own name. */
function input(text: string): unknown {
  const match = /^([^=:]+)=(.+)$/s.exec(text)
  return match === null ? text : { path: match[1], source: match[2] }
}

const OPTIONS = FLAGS.map((flag) => {
  const option = new Option(flag.flags, flag.meaning)
  if (flag.repeated !== undefined)
    option.argParser((text, before: unknown) => [...((before ?? []) as string[]), text])
  return { flag, option }
})

/** Adds a flag for every field of the job file. */
export function addJobFlags(command: Command): void {
  for (const { option } of OPTIONS) command.addOption(option)
  command
    .option('--interruptible', 'allow capacity that can be interrupted (spot)')
    .option('--no-interruptible', 'do not allow it')
    .option('--workdir <folder>', 'folder to send along; "none" sends nothing')
}

/** Adds the flag that turns reading the program off. */
export function addAnalysisFlag(command: Command): void {
  command.option('--no-analyze', 'do not analyze the program to fill in missing fields')
}

/** Returns the fields with the values of the flags, which replace or extend those of the file. */
export function withFlags(fields: JobFields, given: Readonly<Record<string, unknown>>): JobFields {
  const result: JobFields = structuredClone(fields)
  for (const { flag, option } of OPTIONS) {
    const value = given[option.attributeName()]
    if (value !== undefined) put(result, flag, value as string | string[])
  }
  if (given.interruptible !== undefined) result.interruptible = given.interruptible
  return result
}

function put(
  fields: JobFields,
  { path, repeated, read = (text) => text }: JobFlag,
  value: string | string[],
): void {
  const [last = '', ...groups] = [...path].reverse()
  const place = groups.reduceRight<JobFields>((at, name) => (at[name] ??= {}) as JobFields, fields)
  const values = Array.isArray(value) ? value.map(read) : read(value)
  if (last === 'env') {
    place.env = { ...(place.env as object | undefined), ...Object.fromEntries(values as [string, string][]) }
  } else if (last === 'inputs') {
    place.inputs = [...keptInputs(place.inputs, values as object[]), ...(values as object[])]
  } else if (repeated === 'adds') {
    // A flag may repeat a name of the file.
    const before = (place[last] as unknown[] | undefined) ?? []
    place[last] = [...before, ...(values as unknown[]).filter((value) => !before.includes(value))]
  } else {
    place[last] = values
  }
}

/** A flag replaces the file's value at the same path. */
function keptInputs(before: unknown, added: object[]): object[] {
  const paths = added.map((each) => (each as { path?: string }).path)
  return ((before ?? []) as { path: string }[]).filter(({ path }) => !paths.includes(path))
}

/** The flag that gave the value at a path of the fields, for complaints about it. */
export function flagOf(given: Readonly<Record<string, unknown>>): (path: Path) => string | undefined {
  return (at) => {
    if (at[0] === 'interruptible' && given.interruptible !== undefined) return '--interruptible'
    const found = OPTIONS.find(
      ({ flag, option }) =>
        given[option.attributeName()] !== undefined && flag.path.every((name, index) => at[index] === name),
    )
    return found?.option.long ?? undefined
  }
}
