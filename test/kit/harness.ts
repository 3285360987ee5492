/** What a harness gives to the kit, which does everything else: `npm run proof -- NAME` (docs/design/proofs.md). */
import type { OptionValues, ProgramOptions } from '../support/options'

/** One thing to prove. */
export interface Case {
  name: string
  /** The options that prove only this one again, as `['--seed', '17']`. */
  again: readonly string[]
}

/** The result of one case. */
export interface Report {
  /** How it ended, in a few words. */
  state: string
  /** Empty when every invariant held. */
  breaches: string[]
  /** What was drawn and what happened, for a reader of the breaches. */
  story: string[]
  /** The options that prove the broken part of a case again, where that is less than all of it. */
  again?: readonly string[]
}

/** A line of the table: a label and its value. */
export type Row = readonly [label: string, value: string | number]

/** Proves cases: prints each report when it comes, and counts it. */
type Prove<C extends Case, R extends Report> = (cases: readonly C[]) => Promise<R[]>

export interface Harness<O extends ProgramOptions, P, C extends Case, R extends Report> {
  /** How many seeds a run has by default; missing where no case has a seed. */
  seeds?: number
  /** How many cases run at a time by default. */
  jobs: number
  /** Options beyond the common ones. An own `only` selects something else than cases by their names. */
  options: O
  /** Prepares what all cases share, and clears it away afterwards. */
  around: <T>(values: Drawn<O>, use: (place: P) => Promise<T>) => Promise<T>
  /** The cases of a run. Those that the others depend on are proved here. */
  draw: (values: Drawn<O>, place: P, prove: Prove<C, R>) => readonly C[] | Promise<readonly C[]>
  /** Runs and judges a case. One that throws has broken something. */
  live: (one: C, place: P, values: Drawn<O>) => Promise<R>
  /** The table of a run, below the numbers of ends. */
  table?: (reports: readonly R[], values: Drawn<O>) => readonly (Row | string)[]
  /** Seeds for each process: a worker that has ended keeps its workflows in memory. */
  seedsPerProcess?: number
  /** A case that holds is not worth a line. */
  isQuiet?: boolean
  /** An interrupted run waits until its cases have stopped in good order. */
  stops?: boolean
}

/** The options that every harness has. */
export interface CommonValues {
  /** The seeds of the run. */
  seeds: readonly number[]
  jobs: number
  story: boolean
  /** Aborts when somebody interrupts the run. */
  signal: AbortSignal
}

export type Drawn<O extends ProgramOptions> = OptionValues<O> & CommonValues

/** A harness of any kind, as the kit has it. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its types are its own business
export type AnyHarness = Harness<any, any, any, any>

/** The types of a harness, from what it gives. */
export function harness<O extends ProgramOptions, P, C extends Case, R extends Report>(
  given: Harness<O, P, C, R>,
): Harness<O, P, C, R> {
  return given
}

/** A case for each seed. */
export function seeded<T extends object>(
  seeds: readonly number[],
  draw: (seed: number) => T,
): (T & Case & { seed: number })[] {
  return seeds.map((seed) => ({
    name: `seed ${seed}`,
    again: ['--seed', `${seed}`],
    ...draw(seed),
    seed,
  }))
}

/** Cases of many seeds each, where one seed is over in a moment. */
export function chunked(seeds: readonly number[], size: number): (Case & { seeds: readonly number[] })[] {
  return Array.from({ length: Math.ceil(seeds.length / size) }, (_, index) => {
    const part = seeds.slice(index * size, (index + 1) * size)
    const [first, count] = [part[0]!, part.length]
    return {
      name: count === 1 ? `seed ${first}` : `seeds ${first} to ${part.at(-1)}`,
      again: ['--from', `${first}`, '--count', `${count}`],
      seeds: part,
    }
  })
}

/** For a harness whose cases share nothing. */
export const nothingAround = <T>(_values: unknown, use: (place: undefined) => Promise<T>): Promise<T> =>
  use(undefined)
