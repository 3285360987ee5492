import { readFileSync } from 'node:fs'
import type { EnclosedCommand, Enclosure } from '../enclosure'
import { ProgramError, hasCode } from '../errors'
import type { Output, ServiceSettings } from './settings'

/** What services stand on. */
export interface Ground {
  enclosure: Enclosure
  /** Of everything that runs on the machine. */
  environment: Record<string, string>
  /** Where, on this host, what a unit prints is kept. */
  journalFile: (unit: string) => string
  /** Where, on this host, a file of the machine's own disk is; `undefined` when it is not on it. */
  onDisk: (path: string) => string | undefined
  /** Whether the machine has a program of this name or path. */
  hasProgram: (name: string) => boolean
}

/** Makes the directories, sends the output where it belongs, and becomes the command. */
const PREPARE = `
for directory in $1; do mkdir -p -- "$directory" || exit 238; done
case $2 in journal) ;; *) exec >>"$2" || exit 209 ;; esac
case $3 in same) exec 2>&1 ;; journal) ;; *) exec 2>>"$3" || exit 209 ;; esac
shift 3
exec "$@"
`

export function launchOf(
  settings: ServiceSettings,
  { enclosure, environment, onDisk }: Ground,
  { invocation, descriptor }: { invocation: string; descriptor: number },
): EnclosedCommand {
  const state = settings.stateDirectories.map((name) => enclosure.seenAs(`/var/lib/${name}`))
  const runtime = settings.runtimeDirectories.map((name) => enclosure.seenAs(`/run/${name}`))
  const [output, errors] = [settings.output, settings.errorOutput]
  const prepare = ['sh', '-c', truncated([output, errors]) + PREPARE, 'prepare']
  const places = [
    [...state, ...runtime].join(' '),
    placeOf(output),
    errors === undefined ? 'same' : placeOf(errors),
  ]
  return {
    argv: [...prepare, ...places, ...settings.argv],
    cwd: settings.workingDirectory,
    environment: {
      ...environment,
      ...(state.length > 0 && { STATE_DIRECTORY: state.join(':') }),
      ...(runtime.length > 0 && { RUNTIME_DIRECTORY: runtime.join(':') }),
      ...Object.fromEntries(settings.environmentFiles.flatMap((path) => readVariables(path, onDisk))),
      ...settings.environment,
      INVOCATION_ID: invocation,
    },
    stdout: descriptor,
    stderr: descriptor,
  }
}

/** The journal is where the descriptors lead from the start. */
function placeOf(output: Output): string {
  if (output.kind === 'journal') return 'journal'
  return output.kind === 'null' ? '/dev/null' : output.path
}

function truncated(outputs: (Output | undefined)[]): string {
  return outputs
    .flatMap((output) => (output?.kind === 'file' && output.isTruncated ? [output.path] : []))
    .map((path) => `: >'${path.replaceAll("'", `'\\''`)}'\n`)
    .join('')
}

/** `NAME=value` lines, quotes around values removed; a file behind `-` may be missing. */
function readVariables(path: string, onDisk: Ground['onDisk']): [name: string, value: string][] {
  const isOptional = path.startsWith('-')
  const file = onDisk(isOptional ? path.slice(1) : path)
  try {
    if (file === undefined)
      throw new ProgramError(`Failed to load environment file ${path}: not on this machine's disk`)
    const lines = readFileSync(file, 'utf8').split('\n')
    return lines.flatMap((line): [string, string][] => {
      const [, name, value] = /^\s*([A-Za-z_]\w*)=(.*?)\s*$/.exec(line) ?? []
      return name === undefined ? [] : [[name, value!.replace(/^(["'])(.*)\1$/, '$2')]]
    })
  } catch (error) {
    if (isOptional && hasCode(error, 'ENOENT')) return []
    if (hasCode(error, 'ENOENT'))
      throw new ProgramError(`Failed to load environment file ${path}: No such file or directory`)
    throw error
  }
}
