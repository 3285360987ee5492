/** Options of a command with several actions; each action has some of them. */
import type { Command } from 'commander'
import { CrucibleError } from '../../client/errors'

/** The actions of each option, by its name in the code; one that is missing belongs to all. */
export type ActionsOf = Readonly<Record<string, readonly string[]>>

/** Refuses an option that the action would ignore: the person who wrote it relies on it, as on a limit of money. */
export function checkOptions(command: Command, action: string, actionsOf: ActionsOf): void {
  for (const option of command.options) {
    const name = option.attributeName()
    const actions = actionsOf[name]
    if (actions === undefined || actions.includes(action)) continue
    if (command.getOptionValueSource(name) !== 'cli') continue
    throw new CrucibleError(
      'usage',
      `${option.long} has no effect on \`crucible ${command.name()} ${action}\`.`,
      { hint: `Leave it out; it belongs to ${actions.join(', ')}.` },
    )
  }
}
