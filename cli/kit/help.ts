import type { Colors } from 'picocolors/types'
import { COMMANDS } from '../program'

/** The output of `crucible` alone. */
export function helpText(paint: Colors): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length))
  const groups = [...new Set(COMMANDS.map(({ group }) => group))].map((group) => {
    const lines = COMMANDS.filter((command) => command.group === group).map(
      ({ name, summary }) => `  ${paint.bold(name.padEnd(width))}  ${summary}`,
    )
    return [paint.dim(group), ...lines].join('\n')
  })
  return [
    'Runs ML jobs to completion on whatever capacity is cheapest, soonest or safest,',
    'and never loses the job, the money or the checkpoint.',
    '',
    'Usage: crucible COMMAND [arguments]',
    '',
    groups.join('\n\n'),
    '',
    '`crucible COMMAND --help` shows details and examples. `--json` prints any answer as JSON.',
    'JOB is an id, a unique prefix of one, or a name.',
    '',
    'First steps: `crucible demo`; or `crucible dev`, and in a second terminal',
    '`crucible submit train.py --follow`.',
  ].join('\n')
}
