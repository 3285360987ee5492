import type { EnclosedCommand, Enclosure } from '../enclosure'
import type { ServiceSettings } from './settings'

/** The environment in which services run. */
export interface Ground {
  enclosure: Enclosure
  /** Variables of all programs on the machine. */
  environment: Record<string, string>
  /** Returns the file on this host for the output of a unit. */
  journalFile: (unit: string) => string
  /** The file on this host with the serial console. */
  consoleFile: string
  /** Whether the machine has a program of this name or path. */
  hasProgram: (name: string) => boolean
}

/** Creates the directories and replaces itself with the command. */
const PREPARE = `
for directory in $1; do mkdir -p -- "$directory" || exit 238; done
shift
exec "$@"
`

export function launchOf(
  settings: ServiceSettings,
  { enclosure, environment }: Ground,
  { invocation, descriptor }: { invocation: string; descriptor: number },
): EnclosedCommand {
  const state = settings.stateDirectories.map((name) => enclosure.seenAs(`/var/lib/${name}`))
  const prepare = ['sh', '-c', PREPARE, 'prepare', state.join(' ')]
  return {
    argv: [...prepare, ...settings.argv],
    cwd: settings.workingDirectory,
    environment: {
      ...environment,
      ...(state.length > 0 && { STATE_DIRECTORY: state.join(':') }),
      ...settings.environment,
      INVOCATION_ID: invocation,
    },
    stdout: descriptor,
    stderr: descriptor,
  }
}
