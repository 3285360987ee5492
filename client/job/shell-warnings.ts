/** Warnings about commands that their shell may not read as they are meant. */
import type { JobSpec } from '../../core/job/job'

/** Syntax of bash that the `sh` of Debian, Ubuntu and Alpine refuses, or reads as something else. */
const BASH_ONLY: readonly [pattern: RegExp, what: string][] = [
  [/(?:^|[\s;&|(])\[\[\s/, '[[ ]]'],
  [/(?:^|[\n;&|])[ \t]*source\s/, 'source'],
  [/(?:^|[\s;&|(])\w+\+?=\(/, 'an array'],
  [/[<>]\(/, '<( )'],
  [/<<</, '<<<'],
  [/&>>?\s*\S/, '&>'],
  [/\$\{\w+(?:\[|\/|\^|,)/, '${x[...]} or ${x/...}'],
  [/\bset\s+-\w*o?\s*pipefail\b/, 'pipefail'],
  [/(?:^|[\n;&|])[ \t]*function\s+\w+/, 'function'],
]
/** Text that a shell does not read as commands. */
const QUOTED = /'[^']*(?:'|(?![^]))|"(?:\\[^]|[^"\\])*(?:"|\\?(?![^]))|(?:^|\s)#.*$/gm
const PLAIN_SHELL = /(?:^|\/)(?:sh|dash|ash)(?:\s|$)/

export function shellWarnings({ shell, image, run, setup = '' }: JobSpec): string[] {
  const text = `${setup}\n${run}`.replaceAll(QUOTED, (quoted) => (quoted.startsWith('"') ? '""' : "''"))
  const used = BASH_ONLY.filter(([pattern]) => pattern.test(text)).map(([, what]) => what)
  if (shell !== undefined)
    return used.length > 0 && PLAIN_SHELL.test(shell.split(' ', 1)[0]!)
      ? [
          `The commands use ${used.join(', ')}, which only bash understands, but their shell is ${shell}: use shell: bash -eo pipefail.`,
        ]
      : []
  if (image === undefined) return []
  if (used.length > 0)
    return [
      `The commands use ${used.join(', ')}: the image ${image} must have bash, because sh does not understand it.`,
    ]
  return /[^|]\|[^|]/.test(text)
    ? [
        `The commands have a pipe: if the image ${image} has no bash, only its last part decides whether the job has failed.`,
      ]
    : []
}
