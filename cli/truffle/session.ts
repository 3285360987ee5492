import { join } from 'node:path'
import type { Command } from 'commander'
import { Inquiry, KeptAnswers, type RegionAnswers, type Unanswered } from '../../backends/ec2/capacity'
import type { RegionApi } from '../../backends/ec2/capacity'
import { partitionOf, PUBLIC_PARTITION } from '../../network/partitions'
import { homeOf } from '../../storage/home'
import { EXIT_CODES, type ErrorKind } from '../../client/errors'
import { Cli, type Outside } from '../cli'
import { simulation, type Output } from '../kit/output'
import { SCHEMA, writeAnswer, writeText, type Answer, type Format, type UnansweredRow } from './answer'
import { regionsOf, TIMEOUT_MS, type SharedOptions } from './options'

/** The environment of a command of truffle. */
export class Session {
  readonly cli: Cli
  /** A command has set the format, which an error needs too. */
  format: Format
  private showsEmoji = true
  /** The whole program, for its completion script. */
  makeProgram: (() => Command) | undefined

  constructor(
    private readonly outside: TruffleOutside,
    format: Format,
  ) {
    this.format = format
    this.cli = new Cli(outside, format !== 'table', SCHEMA)
  }

  get out(): Output {
    return this.cli.out
  }

  now(): number {
    return this.cli.now()
  }

  /** A question to the person at the terminal; `undefined` without one. */
  get ask(): ((question: string) => Promise<string>) | undefined {
    const { ask } = this.outside
    if (ask === undefined || this.format !== 'table') return undefined
    return (question) => ask(question, this.cli.interruption())
  }

  inquiry(options: SharedOptions): Inquiry {
    const { environment } = this.cli
    const profile = options.profile ?? environment.AWS_PROFILE?.trim()
    const homeRegion = environment.AWS_REGION?.trim() || environment.AWS_DEFAULT_REGION?.trim() || undefined
    const regions = regionsOf(options)
    this.showsEmoji = options.emoji
    const endpoint = environment.AWS_ENDPOINT_URL?.trim() || undefined
    const kept = new KeptAnswers({
      directory: join(homeOf(environment).directory, 'cache', 'truffle'),
      identity: JSON.stringify([
        profile,
        endpoint,
        environment.AWS_ACCESS_KEY_ID,
        environment.AWS_ROLE_ARN,
        environment.AWS_CONFIG_FILE,
        environment.AWS_SHARED_CREDENTIALS_FILE,
      ]),
      isFresh: options.fresh === true,
      clock: () => this.now(),
    })
    kept.tidy()
    return new Inquiry({
      regions,
      kept,
      limitMs: options.timeout ?? TIMEOUT_MS,
      signal: this.cli.interruption(),
      homeRegion: homeRegion ?? defaultHome(regions),
      clock: () => this.now(),
      onProgress: (settled, of) => this.progress(settled, of),
      profile,
      endpoint,
      open: this.outside.openRegion,
    })
  }

  /** Overwrites one progress line, for people who wait for several Regions. */
  private progress(settled: number, of: number): void {
    const { stderr } = this.out
    if (stderr.isTTY !== true || of < 2) return
    stderr.write(settled < of ? `\r\u001b[KAsking ${of} Regions: ${settled} have answered` : '\r\u001b[K')
  }

  /** A title for people: `📊 Capacity Block Summary:` */
  title(emoji: string, text: string): string {
    const hasEmoji = this.showsEmoji && this.out.isTerminal
    return this.out.paint.bold(hasEmoji ? `${emoji} ${text}` : text)
  }

  /** A text that is a whole answer, such as a help. */
  text(name: string, text: string): void {
    writeText({ name, text }, { format: this.format, out: this.out, stdout: this.outside.stdout })
  }

  answer(given: Answer): void {
    const { simulated } = this.outside.config
    const isSimulated = simulated.includes('ec2') && !OF_NO_ACCOUNT.includes(given.command)
    const answer = isSimulated ? { ...given, notes: [simulation(['ec2']), ...given.notes] } : given
    writeAnswer(answer, { format: this.format, out: this.out, stdout: this.outside.stdout })
    if (answer.ending !== undefined) this.cli.exitCode = exitCodeOf(answer)
  }
}

/** Commands that ask no account. */
const OF_NO_ACCOUNT: readonly string[] = ['advise', 'completion', 'version']

/** The other partitions know nothing of the public cloud. */
function defaultHome(regions: readonly string[] | 'all'): string {
  const apart =
    regions === 'all' ? undefined : regions.find((region) => partitionOf(region).name !== PUBLIC_PARTITION)
  return apart ?? 'us-east-1'
}

/** The outside of a process; tests may answer for AWS. */
export interface TruffleOutside extends Outside {
  openRegion?: (region: string) => RegionApi
}

function exitCodeOf({ ending }: Answer): number {
  return EXIT_CODES[ending!]
}

export function unansweredRows(unanswered: readonly Unanswered[]): UnansweredRow[] {
  return unanswered.map(({ region, failure }) => ({
    region,
    code: failure.code ?? null,
    message: failure.message,
    hint: failure.hint ?? null,
  }))
}

/** Returns the ending of a command without results: a lack of capacity only if every Region has answered. */
export function endingOfNothing({ unanswered }: Pick<RegionAnswers<unknown>, 'unanswered'>): ErrorKind {
  const lost = unanswered.filter(({ isClosed }) => !isClosed)
  if (lost.length === 0) return 'capacity'
  return lost.some(({ failure }) => failure.class === 'auth') ? 'permission' : 'unavailable'
}
