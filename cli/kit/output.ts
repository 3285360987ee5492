import type TableLibrary from 'cli-table3'
import { createColors } from 'picocolors'
import type { Colors } from 'picocolors/types'
import { pictureOf } from '../../core/one-line'
import { SHARED_CLOUD } from '../../core/shared-user'
import { plain, plainJson, shown, uncoloured } from './plain'
import { wrapProse } from './prose'
import { fitTable, GAP } from './table'

/** A stream to write to: a terminal, a file or a pipe. */
export interface Sink {
  isTTY?: boolean | undefined
  columns?: number | undefined
  write(text: string): unknown
}

export interface OutputOptions {
  stdout: Sink
  stderr: Sink
  /** Documents for programs instead of text for people. */
  isJson: boolean
  isColourWanted: boolean
  /** Form of the documents. */
  schema?: string | undefined
  /** Backends whose provider is simulated, which each document names. */
  simulated?: readonly string[] | undefined
}

export interface TableOptions {
  /** Columns of numbers. */
  right?: readonly string[]
  /** Columns whose long texts are cut when the table is wider than the screen; in a pipe only the first of them. */
  flexible?: string | readonly string[]
  /** A column, best the last one, whose long texts wrap instead. */
  wrapped?: string
  /** Columns that are dropped, in this order, if the table is still wider than the screen. A note names them. */
  optional?: readonly string[]
}

/** Names the form of the documents of --json. Its number changes when a field changes its meaning or goes. */
const SCHEMA = 'crucible/1'

/** Width of a file or a pipe. */
const WIDTH_ELSEWHERE = 100
/** Width of a terminal that reports none. */
const WIDTH_UNKNOWN = 80

/**
 * Output of a command. Answers go to stdout, as text or as JSON and never as both; remarks and progress go to stderr. Colours are for
 * terminals only.
 */
export class Output {
  readonly isJson: boolean
  readonly stderr: Sink
  /** Colours for stdout. */
  readonly paint: Colors
  /** Colours for stderr. */
  readonly paintNote: Colors
  readonly #stdout: Sink
  readonly #schema: string
  readonly #hasColours: boolean
  readonly #hasColoursInNotes: boolean
  readonly #warned = new Set<string>()
  readonly #simulated: readonly string[]

  constructor({ stdout, stderr, isJson, isColourWanted, schema = SCHEMA, simulated = [] }: OutputOptions) {
    this.#simulated = simulated
    this.#stdout = stdout
    this.#schema = schema
    this.stderr = stderr
    this.isJson = isJson
    this.#hasColours = isColourWanted && stdout.isTTY === true && !isJson
    this.#hasColoursInNotes = isColourWanted && stderr.isTTY === true
    this.paint = createColors(this.#hasColours)
    this.paintNote = createColors(this.#hasColoursInNotes)
  }

  /** True when stdout is a terminal, so that it can be redrawn. */
  get isTerminal(): boolean {
    return this.#stdout.isTTY === true && !this.isJson
  }

  /** The answer as a document; without --json, nothing. */
  json(document: object): void {
    this.#document(this.#simulated.length === 0 ? document : { simulated: this.#simulated, ...document }, 2)
  }

  /** Prints one document per line; nothing without --json. */
  jsonLine(document: object): void {
    this.#document(document)
  }

  #document(document: object, indent?: number): void {
    const text = JSON.stringify({ schema: this.#schema, ...document }, null, indent)
    if (this.isJson) this.#stdout.write(`${plainJson(text)}\n`)
  }

  /** A line of the answer; with --json, nothing. A newline in it comes from a name or a message, and is shown. */
  line(text = ''): void {
    this.block(inOneLine(text))
  }

  /** Text of our own that has several lines. */
  block(text: string): void {
    if (!this.isJson) this.#stdout.write(`${this.#shown(text)}\n`)
  }

  /** A line of a job's log. */
  log(text: string): void {
    this.line(this.#hasColours ? text : uncoloured(text))
  }

  /** Sentences of the answer, which wrap at words in a terminal; further lines are indented. */
  prose(text: string, indent = 0): void {
    const width = widthOf(this.#stdout)
    const line = inOneLine(text)
    this.block(width === undefined ? line : wrapProse(line, width, indent))
  }

  /** Colours in a file or a pipe are not ours, because `paint` has none there. */
  #shown(text: string): string {
    return this.#hasColours ? plain(text) : shown(text)
  }

  /** A line with its control sequences, for users who ask for that. */
  raw(text: string): void {
    if (!this.isJson) this.#stdout.write(`${text}\n`)
  }

  /** Help, which is also an answer. */
  help(text: string): void {
    this.json({ help: text })
    this.block(text)
  }

  /** A remark in addition to the answer. */
  note(text: string): void {
    const width = widthOf(this.stderr)
    const safe = this.#hasColoursInNotes ? plain : shown
    this.stderr.write(`${safe(width === undefined ? text : wrapProse(text, width))}\n`)
  }

  /** Warns in addition to the answer. A command that warns of the same thing at several steps warns once. */
  warn(text: string): void {
    if (this.#warned.has(text)) return
    this.#warned.add(text)
    this.note(this.paintNote.yellow(text))
  }

  /** A table without lines. */
  table(
    head: readonly string[],
    rows: readonly (readonly string[])[],
    { right = [], ...options }: TableOptions = {},
  ): void {
    if (this.isJson) return
    // A program that reads a pipe relies on every column, and on one line per row.
    const [first = []] = [options.flexible ?? []].flat()
    const fitting = this.#stdout.isTTY === true ? options : { flexible: first }
    const fitted = fitTable(
      { head, rows: rows.map((row) => row.map((cell) => this.#cell(cell))) },
      this.width,
      fitting,
    )
    const Table = require('cli-table3') as typeof TableLibrary
    const table = new Table({
      chars: BORDERLESS,
      head: fitted.head.map((title) => this.paint.dim(title)),
      colAligns: fitted.head.map((title) => (right.includes(title) ? 'right' : 'left')),
      style: { 'padding-left': 0, 'padding-right': GAP, head: [], border: [], compact: true },
    })
    table.push(...fitted.rows.map((row) => [...row]))
    for (const line of table.toString().split('\n')) this.line(line.trimEnd())
    if (fitted.leftOut.length === 0) return
    this.note(`Left out to fit ${this.width} columns: ${fitted.leftOut.join(', ')}. --json has everything.`)
  }

  /** A cell has one line and no tab, so that a row is one line of columns. */
  #cell(text: string): string {
    return inOneLine(this.#shown(text)).replaceAll('\t', pictureOf)
  }

  /** Columns of the terminal of stdout. */
  get width(): number {
    return widthOf(this.#stdout) ?? WIDTH_ELSEWHERE
  }

  /** Says that a deployment is simulated, which could be taken for the real one, and what its jobs can read. */
  noteSimulated(): void {
    if (this.#simulated.length === 0 || this.isJson) return
    const read = process.getuid?.() === 0 ? '' : ` ${SHARED_CLOUD}`
    this.note(this.paintNote.yellow(`${simulation(this.#simulated)}${read}`))
  }

  /** Moves to the top of an empty screen. */
  clear(): void {
    if (!this.isTerminal) return
    this.#stdout.write('\u001b[H\u001b[2J')
    if (this.#simulated.length > 0) this.line(this.paint.yellow(simulation(this.#simulated)))
  }
}

/** Names the simulated part of a deployment. */
export function simulation(backends: readonly string[]): string {
  return `Simulated: ${backends.join(', ')} of \`crucible dev --sim\`. Nothing runs or costs at a provider.`
}

function inOneLine(text: string): string {
  return text.replaceAll('\n', pictureOf)
}

/** Columns of a terminal; `undefined` for a file or a pipe. */
function widthOf({ isTTY, columns }: Sink): number | undefined {
  return isTTY === true ? columns || WIDTH_UNKNOWN : undefined
}

const BORDERLESS = Object.fromEntries(
  [
    'top',
    'top-mid',
    'top-left',
    'top-right',
    'bottom',
    'bottom-mid',
    'bottom-left',
    'bottom-right',
    'left',
    'left-mid',
    'mid',
    'mid-mid',
    'right',
    'right-mid',
    'middle',
  ].map((name) => [name, '']),
)
