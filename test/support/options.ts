import { parseArgs } from 'node:util'

/** One option of a program, by its default: a whole number (`NaN` for none), a text, or whether it was given. */
export interface ProgramOption<T extends number | string | boolean = number | string | boolean> {
  default: T
  means: string
  /** What a text stands for; `N` for numbers. */
  as?: string
  /** The least that a number may be; 1 where it is missing. */
  min?: number
}

export type ProgramOptions = Readonly<Record<string, ProgramOption>>

interface Program<O> {
  /** How it is called, as in `npm run NAME`. */
  name: string
  /** Which of its programs, where it has several: the first word after `--`. */
  word?: string
  about: string
  options: O
}

export type OptionValues<O extends ProgramOptions> = {
  [K in keyof O]: O[K]['default'] extends number ? number : O[K]['default'] extends string ? string : boolean
}

/** The exit code of a program that was called with wrong options. */
export const CALLED_WRONGLY = 2

/**
 * The options that a program was called with. Asked for help, or called wrongly, it prints its usage, sets the exit code (0 or 2) and
 * returns nothing: then there is nothing to do.
 */
export function readOptions<O extends ProgramOptions>(
  program: Program<O>,
  args?: readonly string[],
): OptionValues<O> | undefined {
  try {
    const values = valuesOf(program.options, args)
    if (values !== undefined) return values
    process.stdout.write(usageOf(program))
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usageOf(program)}`)
    process.exitCode = CALLED_WRONGLY
  }
  return undefined
}

function valuesOf<O extends ProgramOptions>(
  options: O,
  args?: readonly string[],
): OptionValues<O> | undefined {
  const given = parseArgs({
    args: args === undefined ? undefined : [...args],
    options: {
      help: { type: 'boolean', short: 'h' },
      ...Object.fromEntries(
        Object.entries(options).map(([name, { default: usual }]) => [
          name,
          { type: typeof usual === 'boolean' ? ('boolean' as const) : ('string' as const) },
        ]),
      ),
    },
  }).values as Record<string, string | boolean | undefined>
  if (given['help'] === true) return undefined
  return Object.fromEntries(
    Object.entries(options).map(([name, option]) => [name, valueOf(name, option, given[name])]),
  ) as OptionValues<O>
}

function valueOf(
  name: string,
  { default: usual, min = 1 }: ProgramOption,
  given: string | boolean | undefined,
): number | string | boolean {
  if (given === undefined || typeof usual !== 'number') return given ?? usual
  const number = /^\d+$/.test(String(given)) ? Number(given) : NaN
  if (Number.isSafeInteger(number) && number >= min) return number
  throw new Error(`--${name} takes a whole number from ${min} on, not ${JSON.stringify(given)}.`)
}

function usageOf({ name, word, about, options }: Program<ProgramOptions>): string {
  const rows = Object.entries(options).map(([option, { default: usual, as = 'N', means }]) => {
    const hasUsual = usual !== '' && usual !== false && !Number.isNaN(usual)
    const words = hasUsual ? `${means} (${usual})` : means
    return [typeof usual === 'boolean' ? `--${option}` : `--${option} ${as}`, words]
  })
  const width = Math.max(...rows.map(([option = '']) => option.length))
  const lines = rows.map(([option = '', words]) => `  ${option.padEnd(width)}  ${words}`)
  const called = word === undefined ? '' : `${word} `
  return [`npm run ${name} -- ${called}[options]`, '', about, '', ...lines, ''].join('\n')
}

/** Those of some names that a text with commas asks for; all of them for an empty text. */
export function named<T extends { name: string }>(all: readonly T[], text: string): readonly T[] {
  if (text === '') return all
  const wanted = text.split(',').flatMap((word) => {
    const exact = all.filter(({ name }) => name === word)
    const found = exact.length > 0 ? exact : all.filter(({ name }) => name.includes(word))
    if (found.length > 0) return found
    throw new Error(`Nothing is named ${word}. There are: ${all.map(({ name }) => name).join(', ')}.`)
  })
  return all.filter((one) => wanted.includes(one))
}
