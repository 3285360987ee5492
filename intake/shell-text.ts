/** Texts for a shell in fields that no shell reads: `$HOME` and `~` would reach the machine as they are written. */
import type { Fault, Path } from './problem'
import { quote } from './units'

/** `$NAME`, a command between backquotes, and the beginning of `${NAME:-default}` and of `$(command)` */
const VARIABLES = /`[^`]+`|\$(?:[A-Za-z_]\w*|\{(?=[A-Za-z_])|\()/g
/** The home folder, also that of another user, at the beginning of a path. */
const HOME = /(?:^|[:=])~(?:[a-z_][\w-]*(?=\/)|(?=\/|:|$))/

/** Fields that a shell reads, or whose texts may have such characters. */
const READ_BY_SHELL: readonly string[] = ['run', 'setup', 'script', 'name', 'image_login']

/** The part of a text that only a shell replaces. */
export function shellPart(text: string): string | undefined {
  return variableIn(text) ?? HOME.exec(text)?.[0].replace(/^[:=]/, '')
}

function variableIn(text: string): string | undefined {
  for (const { 0: start, index } of text.matchAll(VARIABLES)) {
    if (!/[{(]$/.test(start)) return start
    const end = text.indexOf(start.endsWith('{') ? '}' : ')', index)
    if (end !== -1) return text.slice(index, end + 1)
  }
  return undefined
}

/** Faults of the fields of a job as they are written. */
export function shellFaults(job: unknown): Fault[] {
  if (typeof job !== 'object' || job === null || Array.isArray(job)) return []
  return Object.entries(job).flatMap(([name, value]) =>
    READ_BY_SHELL.includes(name) ? [] : faultsIn(value, [name]),
  )
}

function faultsIn(value: unknown, path: Path): Fault[] {
  if (typeof value === 'string') return faultOf(value, path)
  if (typeof value !== 'object' || value === null) return []
  const isList = Array.isArray(value)
  return Object.entries(value).flatMap(([name, inner]) =>
    faultsIn(inner, [...path, isList ? Number(name) : name]),
  )
}

function faultOf(text: string, path: Path): Fault[] {
  const part = shellPart(text)
  if (part === undefined) return []
  const message = `has ${quote(part)}, but no shell reads this field: the program would get the text as it is written`
  return [{ path, message, remedy: path[0] === 'env' ? remedyInEnv(String(path.at(-1)), text) : OTHERS }]
}

const OTHERS = 'write what it stands for'

function remedyInEnv(name: string, text: string): string {
  const inRun = `in run, write: export ${name}=${quoted(text)}`
  // The whole value of a variable of the user.
  if (!/^\$(?:\w+|\{\w+\})$/.test(text)) return inRun
  return `to send the value that it has here, add --env ${name}="${text}", or ${name} to secrets; for its value on the machine, ${inRun}`
}

/** A text for a shell, which replaces its variables; two dollars are meant as they are written, not as the id of the shell. */
function quoted(text: string): string {
  if (text.includes('$$')) return `'${text}'`
  return /[\s;&|<>]/.test(text) ? `"${text}"` : text
}
