/** Words of other tools and of earlier versions of such a tool, as our commands. */

const ALIASES: Readonly<Record<string, readonly string[]>> = {
  find: ['search'],
  types: ['search'],
  zones: ['az'],
  azs: ['az'],
  quota: ['quotas'],
  check: ['validate'],
  advice: ['advise'],
  recommend: ['advise'],
  ls: ['list'],
  'capacity-blocks': ['capacity', '--blocks', '--offerings'],
  offerings: ['capacity', '--blocks', '--offerings'],
  blocks: ['capacity', '--blocks'],
  reservations: ['capacity'],
  odcr: ['capacity', '--odcr'],
  topology: ['capacity', '--topology'],
}

/** Options before the command that take a value. */
const VALUED = ['-o', '--output', '-r', '--regions', '--region', '--profile', '--timeout']

const POINTERS: Readonly<Record<string, string>> = {
  buy: 'truffle buys nothing. `truffle capacity --blocks --offerings` prints the command that buys.',
  purchase: 'truffle buys nothing. `truffle capacity --blocks --offerings` prints the command that buys.',
  launch: 'truffle launches nothing. To run a job: `crucible submit FILE`.',
  spawn: 'truffle launches nothing. To run a job: `crucible submit FILE`.',
  price: 'For spot prices: `truffle spot TYPE`. For prices on demand: `truffle search TYPE --show-price`.',
  prices: 'For spot prices: `truffle spot TYPE`. For prices on demand: `truffle search TYPE --show-price`.',
  login: 'Sign in with the AWS CLI: `aws login`, `aws sso login`, or `aws configure`.',
  configure: 'Sign in with the AWS CLI: `aws login`, `aws sso login`, or `aws configure`.',
  available: 'For free reserved machines: `truffle capacity --available-only`. For zones: `truffle az TYPE`.',
}

export function pointerForTruffle(word: string): string | undefined {
  return Object.hasOwn(POINTERS, word) ? POINTERS[word] : undefined
}

/** Moves the command to the front, before options that precede it, and replaces aliases. */
export function withoutTruffleAliases(args: readonly string[]): string[] {
  const at = commandAt(args)
  const word = args[at]
  if (word === undefined) return [...args]
  const own = Object.hasOwn(ALIASES, word) ? ALIASES[word]! : [word]
  const before = args.slice(0, at)
  const after = args.slice(at + 1)
  if (word === 'help' && after[0] !== undefined && Object.hasOwn(ALIASES, after[0]))
    return ['help', ALIASES[after[0]]![0]!]
  if (after.at(-1) === 'help' && after.length === 1) return ['help', own[0]!]
  const given =
    own[0] === 'capacity' || word !== own[0] ? [...before, ...after].map(ofBlocks) : [...before, ...after]
  return [...own, ...given]
}

/** Aliases of options. */
const OPTIONS: Readonly<Record<string, string>> = {
  '--instance-type': '--instance-types',
  '--start-date': '--start-after',
  '--types': '--instance-types',
}

function ofBlocks(arg: string): string {
  const [name = '', ...value] = arg.split('=')
  const ours = Object.hasOwn(OPTIONS, name) ? OPTIONS[name]! : name
  return [ours, ...value].join('=')
}

function commandAt(args: readonly string[]): number {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at]!
    if (!arg.startsWith('-')) return at
    if (VALUED.includes(arg)) at++
  }
  return args.length
}
