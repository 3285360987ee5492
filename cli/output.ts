import { createRequire } from 'node:module'
import { stripVTControlCharacters } from 'node:util'
import type TableLibrary from 'cli-table3'
import { createColors } from 'picocolors'
import type { Colors } from 'picocolors/types'
import { plain, plainJson } from './plain'
import { clip } from './words'

/** Only commands that print a table load what it takes. */
const lazily = createRequire(__filename)

/** A stream that is written to: a terminal, a file or a pipe. */
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
}

export interface TableOptions {
  /** Columns of numbers. */
  right?: readonly string[]
  /** The column whose long texts are cut where the table would be wider than the screen. */
  flexible?: string
}

/** Of a file or a pipe. */
const WIDTH_ELSEWHERE = 100
const GAP = 2
/** A column cut to less tells nothing. */
const FLEXIBLE_MIN = 16

/**
 * Where a command writes. What was asked for goes to stdout, as text or as JSON and never as both; remarks and progress go to
 * stderr. Colours only where a person looks.
 */
export class Output {
  readonly isJson: boolean
  readonly stderr: Sink
  /** Colours for stdout. */
  readonly paint: Colors
  /** Colours for stderr. */
  readonly paintNote: Colors
  readonly #stdout: Sink

  constructor({ stdout, stderr, isJson, isColourWanted }: OutputOptions) {
    this.#stdout = stdout
    this.stderr = stderr
    this.isJson = isJson
    this.paint = createColors(isColourWanted && stdout.isTTY === true && !isJson)
    this.paintNote = createColors(isColourWanted && stderr.isTTY === true)
  }

  /** True when a person looks at stdout, so that it may be drawn anew. */
  get isTerminal(): boolean {
    return this.#stdout.isTTY === true && !this.isJson
  }

  /** The answer as a document; nothing unless JSON was asked for. */
  json(document: unknown): void {
    if (this.isJson) this.#stdout.write(`${plainJson(JSON.stringify(document, null, 2))}\n`)
  }

  /** One document of many, each on a line of its own; nothing unless JSON was asked for. */
  jsonLine(document: unknown): void {
    if (this.isJson) this.#stdout.write(`${plainJson(JSON.stringify(document))}\n`)
  }

  /** A line of the answer; nothing when JSON was asked for. */
  line(text = ''): void {
    if (!this.isJson) this.#stdout.write(`${plain(text)}\n`)
  }

  /** A line as it stands, with whatever it does to a terminal; for users who ask for that. */
  raw(text: string): void {
    if (!this.isJson) this.#stdout.write(`${text}\n`)
  }

  /** Help, which is an answer too. */
  help(text: string): void {
    this.json({ help: text })
    this.line(text)
  }

  /** A remark beside the answer. */
  note(text: string): void {
    this.stderr.write(`${plain(text)}\n`)
  }

  /** A table without lines. */
  table(
    head: readonly string[],
    rows: readonly (readonly string[])[],
    { right = [], flexible }: TableOptions = {},
  ): void {
    if (this.isJson) return
    const texts = rows.map((row) => row.map(plain))
    const shown = flexible === undefined ? texts : fitted(head, texts, { flexible, width: this.width })
    const Table = lazily('cli-table3') as typeof TableLibrary
    const table = new Table({
      chars: BORDERLESS,
      head: head.map((title) => this.paint.dim(title)),
      colAligns: head.map((title) => (right.includes(title) ? 'right' : 'left')),
      style: { 'padding-left': 0, 'padding-right': GAP, head: [], border: [], compact: true },
    })
    table.push(...shown.map((row) => [...row]))
    for (const line of table.toString().split('\n')) this.line(line.trimEnd())
  }

  /** Of the screen that stdout is, in columns. */
  get width(): number {
    return (this.#stdout.isTTY === true ? this.#stdout.columns : undefined) ?? WIDTH_ELSEWHERE
  }

  /** Moves to the top of an empty screen. */
  clear(): void {
    if (this.isTerminal) this.#stdout.write('\u001b[H\u001b[2J')
  }
}

function fitted(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  { flexible, width }: { flexible: string; width: number },
): string[][] {
  const widths = head.map((title, index) =>
    Math.max(title.length, ...rows.map((row) => stripVTControlCharacters(row[index] ?? '').length)),
  )
  const total = widths.reduce((sum, each) => sum + each + GAP, -GAP)
  const at = head.indexOf(flexible)
  const room = Math.max(FLEXIBLE_MIN, widths[at]! - Math.max(0, total - width))
  return rows.map((row) => row.map((cell, index) => (index === at ? clip(cell, room) : cell)))
}

const BORDERLESS = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
    ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
  ].map((name) => [name, '']),
)
