/** Fields shared by the job file and the normalised spec. */
import { withoutEnd } from '../core/trim'
import { z } from 'zod'
import { DISK_IOPS, DISK_MIB_PER_SECOND } from '../core/disk-speed'
import { hasOpenBracket, parseGlob } from '../core/glob'
import { isOwnTagKey, isOwnTagValue, OWN_TAG_KEYS } from '../core/own-tags'
import { isInnerPath } from './paths'
import { shellPart } from './shell-text'
import { quote } from './units'

/** Limits of a job. Temporal stores the spec in every history, and a person must be able to read it. */
export const LIMITS = {
  /** Leaves room for a number and a prefix within the 63 characters of the strictest provider's names. */
  nameLength: 40,
  /** A command is a few lines; a longer one is a program and belongs in a file. */
  commandLength: 16_384,
  imageLength: 300,
  /** Windows and object stores fail at about a thousand. */
  pathLength: 500,
  sourceLength: 2_000,
  /** Largest number of inputs; more files are a folder or an archive. */
  inputs: 100,
  outputs: 100,
  /** Patterns of one kind for the files of a checkpoint. */
  checkpointPatterns: 50,
  /** Groups of stars in one pattern; a real one has a few. */
  globStars: 20,
  /** A larger value is not a meaningful limit. */
  checkpointsKept: 10_000,
  /** Linux fails at 128 KiB for one variable; the whole spec must stay below `specBytes`. */
  envNameLength: 200,
  envValueLength: 32_768,
  env: 200,
  secrets: 50,
  tags: 10,
  backends: 20,
  accelerators: 20,
  instanceTypes: 20,
  /** A payload of this size is stored in the history with every attempt. */
  specBytes: 65_536,
  /** Beyond this, the job file holds data. */
  fileBytes: 65_536,
  /** Largest number of GPUs; no machine has more. */
  gpus: 64,
  cpus: 4_096,
  sizeGiB: 1_048_576,
  /** A longer one is a typo. */
  durationMs: 366 * 24 * 3_600_000,
  /** A hundred million dollars: also a typo. */
  budgetMicroUsd: 100e6 * 1e6,
  regions: 100,
  retries: 10_000,
} as const

/** The problem with a value (completes "<field> ..."), and the correction. */
type Complaint = readonly [message: string, remedy: string]

/** Returns a check with its own message. */
function checked<T>(complain: (value: T) => Complaint | undefined) {
  return z.check<T>((context) => {
    const complaint = complain(context.value)
    if (complaint === undefined) return
    const [message, remedy] = complaint
    context.issues.push({ code: 'custom', input: context.value, message, params: { remedy } })
  })
}

const NAME_PATTERN = '^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$'

export const jobName = z
  .string()
  .max(LIMITS.nameLength)
  .check(
    checked((name) =>
      new RegExp(NAME_PATTERN).test(name)
        ? undefined
        : [`${quote(name)} is not lower-case letters, digits and inner dashes`, remedyOfName(name)],
    ),
  )
  .meta({ pattern: NAME_PATTERN })

function remedyOfName(name: string): string {
  const fixed = `write ${nameFrom(name)}`
  return shellPart(name) === undefined
    ? fixed
    : `no shell reads this field: ${fixed}, or leave it out and submit with --name "${name}"`
}

/** The nearest valid name of a text; `job` if nothing is left. */
export function nameFrom(text: string): string {
  const dashed = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
  return withoutEnd(dashed.slice(0, LIMITS.nameLength), '-') || 'job'
}

const NUL: Complaint = ['has a NUL character', 'remove it']

export const command = z
  .string()
  .max(LIMITS.commandLength)
  .check(
    checked((text) => {
      if (text.trim() === '') return ['is empty', 'write a shell command, or remove the field']
      return text.includes('\0') ? NUL : undefined
    }),
  )

/** Words without quotes: a program and its options, to which `-c` and the command are added. */
export const shell = z
  .string()
  .max(LIMITS.pathLength)
  .regex(/^[\w./+-]+( +[\w./+=-]+)*$/, {
    error: ({ input }) =>
      `${quote(String(input))} is not a shell with its options, such as bash -eo pipefail`,
  })

export const image = z
  .string()
  .max(LIMITS.imageLength)
  .regex(/^[A-Za-z0-9][\w./:@-]*$/, {
    error: ({ input }) => `${quote(String(input))} is not the name of a container image`,
  })

/** The user name for a registry; some require a fixed word, such as `$oauthtoken`. */
export const registryUser = z
  .string()
  .max(LIMITS.envNameLength)
  .regex(/^[!-~]+$/, 'must be the name of a user, without spaces')

/** A path below the working directory. A leading `./` and a trailing slash are removed first. */
export const innerPath = z
  .string()
  .max(LIMITS.pathLength)
  .overwrite((path) => withoutEnd(path.replace(/^(?:\.\/+)+/, ''), '/'))
  .check(
    checked((path) =>
      isInnerPath(path) && !path.startsWith('~')
        ? undefined
        : [
            `${quote(path)} is not inside the working directory`,
            'write a path relative to it, with no ".." in it',
          ],
    ),
  )

/** A problem with a glob (`core/glob.ts`). */
function globComplaint(pattern: string): Complaint | undefined {
  const stars = pattern.match(/\*+/g)?.length ?? 0
  if (stars > LIMITS.globStars)
    return [
      `${quote(pattern)} has ${stars} stars of at most ${LIMITS.globStars}`,
      'write ** once for any number of folders',
    ]
  const read = parseGlob(pattern)
  if ('message' in read) return [`${quote(pattern)} ${read.message}`, 'correct it, or write * for any text']
  if (!hasOpenBracket(pattern)) return undefined
  return [`${quote(pattern)} has a [ without its ]`, 'close it, or write [[] for the character [']
}

/** A path or a glob of artifacts. */
export const outputPattern = innerPath.check(checked(globComplaint))

/** A glob for files of a checkpoint: `*`, `?`, `[...]` and `**`. */
export const checkpointPattern = innerPath.check(
  checked((pattern) => {
    if (pattern.startsWith('!'))
      return [`${quote(pattern)} begins with "!"`, `write ${pattern.slice(1) || 'the pattern'} under exclude`]
    if (/[{}]/.test(pattern))
      return [
        `${quote(pattern)} has braces, which are not supported`,
        'write * for any text, or one pattern for each name',
      ]
    return globComplaint(pattern)
  }),
)

export const diskMibPerSecond = z.int().min(DISK_MIB_PER_SECOND.min).max(DISK_MIB_PER_SECOND.max)
export const diskIops = z.int().min(DISK_IOPS.min).max(DISK_IOPS.max)

export const keptCount = z.int().min(1).max(LIMITS.checkpointsKept)

const ENV_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]*$'

export const envName = z
  .string()
  .max(LIMITS.envNameLength)
  .check(
    checked((name) => {
      if (name.startsWith('CRUCIBLE_'))
        return [`${quote(name)} is a variable that Crucible sets`, 'choose another name']
      if (new RegExp(ENV_NAME_PATTERN).test(name)) return undefined
      return [`${quote(name)} is not the name of a variable`, 'use letters, digits and _, no digit first']
    }),
  )
  .meta({ pattern: ENV_NAME_PATTERN })

export const envValue = z
  .string()
  .max(LIMITS.envValueLength)
  .check(checked((value) => (value.includes('\0') ? NUL : undefined)))

/** Environment variables whose values have a given syntax. */
export function envOf<I>(value: z.ZodType<string, I>): z.ZodType<Record<string, string>, Record<string, I>> {
  return z.record(envName, value).check(
    checked((values) => {
      const count = Object.keys(values).length
      if (count <= LIMITS.env) return undefined
      return [`has ${count} variables of at most ${LIMITS.env}`, 'put them into a file']
    }),
  )
}

/** Tags for bills and tag policies, whose values have a given syntax. */
export function tagsOf<I>(value: z.ZodType<string, I>): z.ZodType<Record<string, string>, Record<string, I>> {
  return z.record(z.string(), value).check(
    checked((tags) => {
      const entries = Object.entries(tags)
      if (entries.length > LIMITS.tags)
        return [`has ${entries.length} tags of at most ${LIMITS.tags}`, 'remove some']
      const key = Object.keys(tags).find((one) => !isOwnTagKey(one))
      if (key !== undefined) return [`has ${quote(key)}, which is no key of a tag`, `write ${OWN_TAG_KEYS}`]
      const odd = entries.find(([, text]) => !isOwnTagValue(text))
      if (odd === undefined) return undefined
      return [
        `has ${quote(odd[1])}, which is no value of a tag`,
        'write at most 256 letters, digits, spaces and +-=._:/@',
      ]
    }),
  )
}

export const secrets = z.array(envName).max(LIMITS.secrets)
export const outputs = z.array(outputPattern).max(LIMITS.outputs)

const SCHEMES = ['file://', 'https://', 'http://', 's3://']

/** Source of an input. */
export const source = z.string().max(LIMITS.sourceLength).check(checked(sourceComplaint))

function sourceComplaint(text: string): Complaint | undefined {
  if (text.startsWith('/')) return [`${quote(text)} has no scheme`, `write file://${text}`]
  if (!SCHEMES.some((scheme) => text.startsWith(scheme))) {
    return [
      `${quote(text)} starts with none of ${SCHEMES.join(', ')}`,
      'write file:///path; files in the working directory are sent along automatically',
    ]
  }
  if (!URL.canParse(text)) return [`${quote(text)} is not a URL`, 'write it as https://host/path']
  const { protocol, host, pathname } = new URL(text)
  if (protocol.startsWith('http') && /\s/.test(text)) return [`${quote(text)} has a space`, 'write it as %20']
  const login = loginComplaint(text)
  if (login !== undefined) return login
  if (protocol === 'file:' && host !== '') {
    return [`${quote(text)} has a host`, `write three slashes: file:///${host}${pathname}`]
  }
  if (pathname.length > 1) return undefined
  return [`${quote(text)} names no file`, 'write its path after the host or bucket']
}

function loginComplaint(url: string): Complaint | undefined {
  if (!URL.canParse(url)) return undefined
  const { username, password } = new URL(url)
  if (username === '' && password === '') return undefined
  return [
    'contains a user name or password, which would be stored with the job',
    'use a URL without credentials',
  ]
}

/** URL that is posted to. */
export const webhook = z
  .string()
  .max(LIMITS.sourceLength)
  .regex(/^https?:\/\/\S+$/, 'must be an http or https URL')
  .check(checked(loginComplaint))

export const backendName = z.string().regex(/^[a-z][a-z0-9-]{0,30}$/, 'is not the name of a backend')

export const regionName = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9-]*$/, 'is not the name of a Region or zone')

export const instanceTypeName = z
  .string()
  .regex(/^[a-zA-Z0-9][\w.-]{0,63}$/, 'is not the name of an instance type')

/** A reservation's id in Crucible (`client/reservation/reservations.ts`), or the provider's. */
export const reservationName = z.string().regex(/^[A-Za-z0-9][\w-]{1,99}$/, 'is not the id of a reservation')

export const retryCount = z.int().min(0).max(LIMITS.retries)
