import type { Clock } from '../clock'
import type { Random } from '../random'
import type { FaultKind, FaultOf, FaultRule } from './fault-schema'

/** The object that a rule is matched against: a call, or an instance. */
export interface Occasion {
  service?: string
  action?: string
  caller?: string
  registry?: string
  image?: string
  region?: string
  zone?: string
  type?: string
  capacity?: string
  instance?: string
  tags?: ReadonlyMap<string, string>
  /** The parameters of a call. */
  parameters?: unknown
}

type Occasions = Partial<Record<keyof Omit<Occasion, 'tags'>, string | undefined>> & {
  tags?: Readonly<Record<string, string>> | undefined
}

interface Entry {
  rule: FaultRule
  /** A stable name for its random draws. */
  name: string
  sinceMs: number
  occasions: number
  happened: number
  isOver: boolean
}

/** The rules of a world, each with the number of its occasions and of its strikes. */
export class Faults {
  private readonly entries: Entry[] = []
  private readonly startMs: number

  constructor(
    rules: readonly FaultRule[],
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    this.startMs = clock.nowMs()
    for (const rule of rules) this.add(rule, this.startMs)
  }

  /** Adds a rule while the cloud runs; its times count from `sinceMs`, by default now. Returns a function that ends the rule. */
  add(rule: FaultRule, sinceMs = this.clock.nowMs()): () => void {
    const name = `fault/${this.entries.length}`
    const entry: Entry = { rule, name, sinceMs, occasions: 0, happened: 0, isOver: false }
    this.entries.push(entry)
    return () => {
      entry.isOver = true
    }
  }

  /** Returns every rule with the number of its strikes. */
  told(): { rule: FaultRule; struck: number }[] {
    return this.entries.map(({ rule, happened }) => ({ rule, struck: happened }))
  }

  /** Returns all rules of the kind that strike on this occasion. Each query counts as one occasion. */
  strike<K extends FaultKind>(kind: K, occasion: Occasion): FaultOf<K>[] {
    return this.entries
      .filter((entry) => entry.rule.fault === kind && this.strikes(entry, occasion))
      .map(
        // The filter above has compared the kind.
        ({ rule }) => rule as FaultOf<K>,
      )
  }

  /** Returns the first rule of the kind that strikes; later rules do not count this occasion. */
  first<K extends FaultKind>(kind: K, occasion: Occasion): FaultOf<K> | undefined {
    const entry = this.entries.find((each) => each.rule.fault === kind && this.strikes(each, occasion))
    return entry?.rule as FaultOf<K> | undefined
  }

  private strikes(entry: Entry, occasion: Occasion): boolean {
    const { rule, isOver } = entry
    if (isOver || (rule.times !== undefined && entry.happened >= rule.times)) return false
    const ageMs = this.clock.nowMs() - entry.sinceMs
    if (ageMs < rule.from || (rule.until !== undefined && ageMs >= rule.until)) return false
    if (!fits(rule.where, occasion)) return false
    entry.occasions += 1
    if (entry.occasions <= rule.skip) return false
    if (rule.chance < 1 && this.random.at(`${entry.name}#${entry.occasions}`) >= rule.chance) return false
    entry.happened += 1
    return true
  }
}

function fits(where: FaultRule['where'], occasion: Occasion): boolean {
  const { tags, parameters, ...texts }: Occasions = where
  const textsFit = Object.entries(texts).every(([name, pattern]) =>
    matches(pattern, occasion[name as keyof typeof texts]),
  )
  return (
    textsFit &&
    (parameters === undefined || matches(parameters, JSON.stringify(occasion.parameters))) &&
    Object.entries(tags ?? {}).every(([key, pattern]) => matches(pattern, occasion.tags?.get(key)))
  )
}

/** Whether a text matches a pattern in which `*` stands for any text and `?` for any character. */
export function matches(pattern: string | undefined, text: string | undefined): boolean {
  if (pattern === undefined) return true
  if (text === undefined) return false
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*/g, '.*')
    .replace(/\?/g, '.')
  return new RegExp(`^${source}$`, 's').test(text)
}
