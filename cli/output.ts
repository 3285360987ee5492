import { createRequire } from 'node:module'
import type TableLibrary from 'cli-table3'
import { createColors } from 'picocolors'
import type { Colors } from 'picocolors/types'

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
    if (this.isJson) this.#stdout.write(`${JSON.stringify(document, null, 2)}\n`)
  }

  /** One document of many, each on a line of its own; nothing unless JSON was asked for. */
  jsonLine(document: unknown): void {
    if (this.isJson) this.#stdout.write(`${JSON.stringify(document)}\n`)
  }

  /** A line of the answer; nothing when JSON was asked for. */
  line(text = ''): void {
    if (!this.isJson) this.#stdout.write(`${text}\n`)
  }

  /** A remark beside the answer. */
  note(text: string): void {
    this.stderr.write(`${text}\n`)
  }

  /** A table without lines; the columns named in `right` are numbers. */
  table(head: readonly string[], rows: readonly (readonly string[])[], right: readonly string[] = []): void {
    if (this.isJson) return
    const Table = lazily('cli-table3') as typeof TableLibrary
    const table = new Table({
      chars: BORDERLESS,
      head: head.map((title) => this.paint.dim(title)),
      colAligns: head.map((title) => (right.includes(title) ? 'right' : 'left')),
      style: { 'padding-left': 0, 'padding-right': 2, head: [], border: [], compact: true },
    })
    table.push(...rows.map((row) => [...row]))
    for (const line of table.toString().split('\n')) this.line(line.trimEnd())
  }

  /** Moves to the top of an empty screen. */
  clear(): void {
    if (this.isTerminal) this.#stdout.write('\u001b[H\u001b[2J')
  }
}

const BORDERLESS = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
    ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
  ].map((name) => [name, '']),
)
