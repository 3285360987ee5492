import { Option, type Command } from 'commander'
import { BLOCK_COUNT_MAX } from '../../../backends/ec2/capacity'
import { CrucibleError } from '../../../client/errors'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import { addShared, dateArgument, daysArgument, hoursArgument, listArgument } from '../options'
import type { Session } from '../session'
import { showOfferings } from '../offerings'
import { showOwned, type CapacityOptions } from '../owned'
import { showTopology } from '../topology'

const MIN_CAPACITY_MAX = 100_000

export function define(command: Command, session: Session): void {
  command.description(
    'List what the account has reserved: on-demand capacity reservations (ODCRs, the default), or with --blocks the Capacity Blocks that it ' +
      'owns. With --blocks --offerings, list the blocks that can be bought. Exits with 3 if nothing fits.',
  )
  addShared(
    command
      .option('--odcr', 'on-demand capacity reservations (default)')
      .option('--blocks', 'Capacity Blocks')
      .option('--instance-types <list>', 'only these types, separated by commas; globs too', listArgument)
      .option('--az <list>', 'only these zones', listArgument)
      .option('--gpu-only', 'only types with GPUs or other accelerators')
      .option('--available-only', 'only with room for a launch now')
      .option('--active-only', 'only active ones, and paid blocks that have not begun')
      .option(
        '--min-capacity <count>',
        'only with room for this many instances',
        countArgument(MIN_CAPACITY_MAX),
      )
      .option('--all', 'also those that have ended')
      .option('--topology', 'how the reserved machines are placed in the network')
      .option('--offerings', 'with --blocks: what can be bought')
      .option(
        '--count <n>',
        `with --offerings: instances, up to ${BLOCK_COUNT_MAX} (default: 1)`,
        countArgument(MIN_CAPACITY_MAX),
      )
      .option(
        '--days <n>',
        'with --offerings: days, 1 to 14 or whole weeks up to 182 (default: 1)',
        daysArgument,
      )
      .addOption(new Option('--duration-hours <hours>').argParser(hoursArgument).hideHelp())
      .option('--start-after <date>', 'with --offerings: earliest start, such as 2027-01-15', dateArgument)
      .option('--start-before <date>', 'with --offerings: latest start', dateArgument)
      .option('--end-by <date>', 'with --offerings: latest end', dateArgument)
      .addOption(
        new Option('--sort <key>', 'with --offerings: order').choices(['start', 'price']).default('start'),
      ),
    { hasTerraform: true },
  )
    .addHelpText(
      'after',
      examples(
        ['truffle capacity', 'all on-demand reservations'],
        ['truffle capacity --odcr --gpu-only --available-only', 'with room now'],
        ['truffle capacity --blocks --instance-types p5.48xlarge', 'own Capacity Blocks'],
        ['truffle capacity --blocks --offerings --instance-types p5.48xlarge --count 32 --days 7', 'to buy'],
        ['truffle capacity --topology', 'own reservations in the network'],
        ['truffle capacity --odcr --output terraform > odcrs.tf', 'as Terraform'],
      ),
    )
    .action((options: CapacityOptions) => capacity(session, options))
}

/** Options that only a search for offerings has. */
const OF_OFFERINGS = ['count', 'days', 'durationHours', 'startAfter', 'startBefore', 'endBy'] as const
/** Options that apply to own reservations only. */
const OF_OWNED = ['availableOnly', 'activeOnly', 'minCapacity', 'all', 'topology'] as const

async function capacity(session: Session, options: CapacityOptions): Promise<void> {
  if (options.offerings === true) {
    if (options.odcr === true)
      throw new CrucibleError(
        'usage',
        '--offerings lists Capacity Blocks and cannot be combined with --odcr.',
        {
          hint: 'On-demand reservations are created, not bought: `aws ec2 create-capacity-reservation`.',
        },
      )
    refuse(options, OF_OWNED, 'applies to own reservations, not to --offerings')
    return showOfferings(session, options)
  }
  refuse(
    options,
    OF_OFFERINGS,
    'requires --blocks --offerings; without them, truffle lists what the account owns',
  )
  return options.topology === true ? showTopology(session, options) : showOwned(session, options)
}

function refuse(options: CapacityOptions, names: readonly (keyof CapacityOptions)[], why: string): void {
  const given = names.find((name) => options[name] !== undefined)
  if (given === undefined) return
  const flag = `--${given.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
  throw new CrucibleError('usage', `${flag} ${why}.`)
}
