import { setMaxListeners } from 'node:events'
import { formatDuration } from '../../../core/time/time'
import { limitedTo } from '../../calls'
import { BackendError } from '../../errors'
import type { Limiter } from '../../limiter'
import { createLimiter } from '../../limiter'
import { invalid } from '../errors'
import type { RegionApi } from '../sdk/api-capacity'
import { createRegionApi } from '../sdk/region'
import type { KeptAnswers } from './kept-answers'
import { keepingAnswers } from './kept-answers'
import { askRegions, closedRegion, type RegionAnswers, type Unanswered } from './many-regions'
import { isEndedSession } from '../../../network/sign-in'

export interface InquiryOptions {
  /** Regions to ask, or all that the account has enabled. */
  regions: readonly string[] | 'all'
  /** Region that answers questions about the whole account. */
  homeRegion: string
  profile?: string | undefined
  endpoint?: string | undefined
  /** Aborts at Ctrl-C. */
  signal: AbortSignal
  limitMs: number
  kept: KeptAnswers
  clock: () => number
  /** Shows how many of the Regions have answered; 0 at the beginning. */
  onProgress?: (settled: number, of: number) => void
  /** Questions of one Region, replaced by tests. */
  open?: (region: string) => RegionApi
}

/**
 * Request rate for one Region and account in general (EC2 developer guide, "Request throttling", November 2026): lists without a filter
 * have the smallest bucket, and every request here counts against it.
 */
const BUCKET = { size: 50, perSecond: 10 }

/** One command's questions to the Regions of an account. */
export class Inquiry {
  readonly signal: AbortSignal
  readonly clock: () => number
  readonly homeRegion: string
  private readonly apis = new Map<string, RegionApi>()
  private regionsKnown: Promise<RegionsToAsk> | undefined

  constructor(private readonly options: InquiryOptions) {
    this.signal = limitedTo(options.limitMs, options.signal)
    // Every request of every Region listens to the signal.
    setMaxListeners(0, this.signal)
    this.clock = options.clock
    this.homeRegion = options.homeRegion
  }

  at(region: string): RegionApi {
    const known = this.apis.get(region) ?? keepingAnswers(this.open(region), region, this.options.kept)
    this.apis.set(region, known)
    return known
  }

  private open(region: string): RegionApi {
    const { profile, endpoint, open, clock } = this.options
    if (open !== undefined) return open(region)
    const limiter: Limiter = createLimiter(BUCKET, clock)
    return createRegionApi({ region, limiter, signal: this.signal, profile, endpoint })
  }

  /** Asks the home Region a question, and throws errors that a person can act on. */
  async home<T>(ask: (api: RegionApi) => Promise<T>): Promise<T> {
    const { homeRegion: region } = this
    const { answers, unanswered } = await this.askAll([region], (api) => ask(api))
    if (answers.length === 0) throw this.errorOf(unanswered[0]!)
    return answers[0]!.value
  }

  /**
   * Asks every Region. Throws if none answers; otherwise `unanswered` names the others. It includes Regions that the account has not
   * enabled, unless all were requested.
   */
  async each<T>(ask: (api: RegionApi, region: string) => Promise<T>): Promise<RegionAnswers<T>> {
    const { regions } = await this.regions()
    const found = await this.askAll(regions, ask)
    if (this.options.signal.aborted) throw interrupted()
    const asked = { ...found, unanswered: await this.explained(found.unanswered) }
    if (asked.answers.length > 0) return asked
    const [first] = asked.unanswered
    if (first === undefined) throw invalid('no Region to ask', 'Name Regions with --regions.')
    throw this.errorOf(first)
  }

  /** The Regions to ask. */
  regions(): Promise<RegionsToAsk> {
    this.regionsKnown ??= this.findRegions()
    return this.regionsKnown
  }

  private async findRegions(): Promise<RegionsToAsk> {
    const { regions, homeRegion } = this.options
    if (regions !== 'all') return { regions: [...regions], closed: [], notes: [] }
    try {
      const found = await this.home((api) => api.capacity.regions(this.signal))
      return {
        regions: namesOf(found.filter(({ isEnabled }) => isEnabled)),
        closed: namesOf(found.filter(({ isEnabled }) => !isEnabled)),
        notes: [],
      }
    } catch (error) {
      const { failure } = error as BackendError
      if (failure?.class !== 'auth' || !/DescribeRegions/.test(failure.message)) throw error
      const note = `Only ${homeRegion} was asked, because this identity may not list the Regions (ec2:DescribeRegions); name others with --regions.`
      return { regions: [homeRegion], closed: [], notes: [note] }
    }
  }

  private async askAll<T>(
    regions: readonly string[],
    ask: (api: RegionApi, region: string) => Promise<T>,
  ): Promise<RegionAnswers<T>> {
    const { limitMs, onProgress } = this.options
    onProgress?.(0, regions.length)
    return askRegions(regions, (region) => ask(this.at(region), region), {
      signal: this.signal,
      limitMs,
      onSettled: (settled) => onProgress?.(settled, regions.length),
    })
  }

  /** Explains named Regions without an answer: whether they exist, and whether the account has enabled them. */
  private async explained(unanswered: readonly Unanswered[]): Promise<Unanswered[]> {
    const { regions, signal } = this.options
    const isDoubtful = unanswered.some(({ region }) => region !== this.homeRegion)
    if (regions === 'all' || !isDoubtful || signal.aborted || this.signal.aborted) return [...unanswered]
    const known = await this.at(this.homeRegion)
      .capacity.regions(this.signal)
      .catch(() => undefined)
    if (known === undefined) return [...unanswered]
    return unanswered.map((one) => {
      const state = known.find(({ name }) => name === one.region)
      if (state === undefined) return unknownRegion(one.region, namesOf(known))
      return state.isEnabled ? one : closedRegion(one.region)
    })
  }

  private errorOf({ failure, isClosed }: Unanswered): BackendError {
    if (this.options.signal.aborted) return interrupted()
    // Workers wait until a person has signed in again; a command ends.
    const isEnded = !isClosed && isEndedSession(failure.code)
    return new BackendError(isEnded ? { ...failure, class: 'auth' } : failure)
  }

  /** Returns remarks about the sources of the answers. */
  async notes(): Promise<string[]> {
    const { closed, notes } = await this.regions()
    const { oldestMs } = this.options.kept
    return [
      ...notes,
      ...(closed.length > 0
        ? [`Not asked, because the account has not enabled them: ${closed.join(', ')}.`]
        : []),
      ...(oldestMs === undefined
        ? []
        : [`Some answers are from ${formatDuration(oldestMs)} ago; --fresh asks again.`]),
    ]
  }
}

export interface RegionsToAsk {
  regions: string[]
  /** Regions that are not enabled for the account; only known if all Regions were requested. */
  closed: string[]
  notes: string[]
}

const NAMED_MAX = 4

function unknownRegion(region: string, known: readonly string[]): Unanswered {
  const similar = known.filter((name) => name.slice(0, 2) === region.slice(0, 2)).slice(0, NAMED_MAX)
  return {
    region,
    isClosed: true,
    failure: {
      class: 'invalid',
      code: 'NoSuchRegion',
      message: `there is no Region ${region} for this account`,
      hint: `Write one such as ${(similar.length > 0 ? similar : known.slice(0, NAMED_MAX)).join(', ')}.`,
    },
  }
}

const namesOf = (regions: { name: string }[]): string[] => regions.map(({ name }) => name).sort()

function interrupted(): BackendError {
  return new BackendError({ class: 'transient', code: 'Interrupted', message: 'Interrupted.' })
}
