import { Option, type Command } from 'commander'
import type { JobFields, Path } from '../client/job-file'
import { CrucibleError } from '../client/errors'
import { REBALANCE_ANSWERS } from '../core/documents'
import { OBJECTIVES } from '../core/job'

/** A flag for a field of the job file. */
interface JobFlag {
  flags: string
  meaning: string
  /** The field that it gives. */
  path: readonly string[]
  /** What becomes of a flag that may be given more than once: its values replace the file's, or are added to them. */
  repeated?: 'replaces' | 'adds'
  read?: (text: string) => unknown
}

const FLAGS: readonly JobFlag[] = [
  { flags: '--name <name>', path: ['name'], meaning: 'what lists call the job' },
  { flags: '--gpus <count>', path: ['resources', 'gpus'], meaning: 'GPUs, such as 1 or 2..8' },
  {
    flags: '--gpu-memory <size>',
    path: ['resources', 'gpu_memory'],
    meaning: 'of each GPU, such as 24GB..80GB',
  },
  {
    flags: '--accelerator <model>',
    path: ['resources', 'accelerators'],
    meaning: 'a GPU model that will do; may be repeated',
    repeated: 'replaces',
  },
  { flags: '--cpus <count>', path: ['resources', 'cpus'], meaning: 'CPU cores, such as 8 or 4..16' },
  { flags: '--memory <size>', path: ['resources', 'memory'], meaning: 'of the machine, such as 32GB' },
  { flags: '--disk <size>', path: ['resources', 'disk'], meaning: 'room on the disk, such as 200GB' },
  { flags: '--shm <size>', path: ['resources', 'shm'], meaning: 'shared memory of the container' },
  {
    flags: '--duration <duration>',
    path: ['duration'],
    meaning: 'your estimate of the training time, such as 6h',
  },
  {
    flags: '--checkpoint-dir <folder>',
    path: ['checkpoint', 'directory'],
    meaning: 'where the program saves',
  },
  {
    flags: '--checkpoint-every <duration>',
    path: ['checkpoint', 'every'],
    meaning: 'keep one at most this often',
  },
  {
    flags: '--on-rebalance <what>',
    path: ['on_rebalance'],
    meaning: `when the provider may soon take the machine: ${REBALANCE_ANSWERS.join(', ')}`,
  },
  {
    flags: '--deadline <when>',
    path: ['deadline'],
    meaning: 'by when it must be over: 36h, or an instant with its zone',
  },
  { flags: '--budget <dollars>', path: ['budget'], meaning: 'what it may cost in all, such as 25' },
  {
    flags: '--backend <backend>',
    path: ['backends'],
    meaning: 'where it may run, such as local or ec2:spot; may be repeated',
    repeated: 'replaces',
  },
  { flags: '--optimize <what>', path: ['optimize'], meaning: `what to prefer: ${OBJECTIVES.join(', ')}` },
  {
    flags: '--max-failures <count>',
    path: ['retries', 'failures'],
    meaning: 'start a failed program again so often',
    read: count,
  },
  {
    flags: '--max-interruptions <count>',
    path: ['retries', 'interruptions'],
    meaning: 'how often it may lose its machine',
    read: count,
  },
  { flags: '--image <image>', path: ['image'], meaning: 'a container image to run in' },
  { flags: '--image-user <name>', path: ['image_login', 'username'], meaning: 'who logs in to its registry' },
  {
    flags: '--image-password <name>',
    path: ['image_login', 'password'],
    meaning: 'the variable here with the password, or the token, for its registry',
  },
  { flags: '--setup <command>', path: ['setup'], meaning: 'a command run before it on every machine' },
  {
    flags: '--env <name=value>',
    path: ['env'],
    meaning: 'a variable of the program; may be repeated',
    repeated: 'adds',
    read: variable,
  },
  {
    flags: '--secret <name>',
    path: ['secrets'],
    meaning: 'a variable whose value is taken from here and travels sealed; may be repeated',
    repeated: 'adds',
  },
  {
    flags: '--input <path=source>',
    path: ['inputs'],
    meaning: 'a file that every machine fetches first; may be repeated',
    repeated: 'adds',
    read: input,
  },
  {
    flags: '--output <path>',
    path: ['outputs'],
    meaning: 'a path or glob to keep; may be repeated',
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
    hint: 'Write --env NAME=VALUE, or --secret NAME for a value that nobody should see.',
  })
}

/** `data.bin=https://...`, or a source alone, which keeps its own name. */
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
    .option('--interruptible', 'it may run on capacity that can be taken back (spot)')
    .option('--no-interruptible', 'it may not')
    .option('--workdir <folder>', 'the folder to send along; "none" sends nothing')
}

/** The fields with what the flags say in place of, or beside, what stands there. */
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
  } else {
    place[last] =
      repeated === 'adds' ? [...((place[last] as unknown[]) ?? []), ...(values as unknown[])] : values
  }
}

/** A flag replaces what the file puts at the same path. */
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
