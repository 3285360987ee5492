/** Tables that fit the screen. */
import { stripVTControlCharacters } from 'node:util'
import type { TableOptions } from './output'
import { clip } from './words'

/** Space between two columns. */
export const GAP = 2
/** A narrower column is useless; on a narrow screen, a little says more than nothing. */
const CUT_MIN = 12
const CUT_MIN_NARROW = 8
const NARROW = 60

export interface Table {
  head: readonly string[]
  rows: readonly (readonly string[])[]
}

export interface FittedTable extends Table {
  /** Titles of columns that did not fit. */
  leftOut: string[]
}

/** Cuts, wraps and drops columns, as far as needed and allowed, until a table is at most `width` wide. */
export function fitTable(
  table: Table,
  width: number,
  { flexible = [], wrapped, optional = [] }: Omit<TableOptions, 'right'>,
): FittedTable {
  const cut = typeof flexible === 'string' ? [flexible] : flexible
  const shrinking = wrapped === undefined ? cut : [wrapped, ...cut]
  const leftOut: string[] = []
  let shown = table
  for (const title of optional) {
    if (narrowest(shown, width, shrinking) <= width) break
    if (!shown.head.includes(title)) continue
    leftOut.push(title)
    shown = without(shown, title)
  }
  const widths = shrunk(shown, width, shrinking)
  const rows = shown.rows.map((row) =>
    row.map((cell, at) => {
      const room = widths[at]!
      return shown.head[at] === wrapped ? wrap(cell, room) : lengthOf(cell) > room ? clip(cell, room) : cell
    }),
  )
  return { head: shown.head, rows, leftOut }
}

function narrowest(table: Table, screen: number, shrinking: readonly string[]): number {
  return total(
    naturalWidths(table).map((natural, at) =>
      shrinking.includes(table.head[at]!) ? least(table.head[at]!, natural, screen) : natural,
    ),
  )
}

function least(title: string, natural: number, screen: number): number {
  return Math.min(natural, Math.max(screen < NARROW ? CUT_MIN_NARROW : CUT_MIN, title.length))
}

/** Column widths after the widest shrinkable columns have been narrowed as far as necessary. */
function shrunk(table: Table, width: number, shrinking: readonly string[]): number[] {
  const widths = naturalWidths(table)
  const mayShrink = widths.map((natural, at) => {
    const title = table.head[at]!
    return shrinking.includes(title) ? least(title, natural, width) : natural
  })
  for (let excess = total(widths) - width; excess > 0; excess--) {
    const widest = widths
      .map((each, at) => ({ at, room: each - mayShrink[at]!, each }))
      .filter(({ room }) => room > 0)
      .sort((a, b) => b.each - a.each)[0]
    if (widest === undefined) break
    widths[widest.at]! -= 1
  }
  return widths
}

function without({ head, rows }: Table, title: string): Table {
  const at = head.indexOf(title)
  const drop = (row: readonly string[]): string[] => row.filter((_, index) => index !== at)
  return { head: drop(head), rows: rows.map(drop) }
}

function naturalWidths({ head, rows }: Table): number[] {
  return head.map((title, at) => Math.max(title.length, ...rows.map((row) => lengthOf(row[at] ?? ''))))
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each + GAP, -GAP)
}

function lengthOf(text: string): number {
  return stripVTControlCharacters(text).length
}

/** Breaks lines between words if possible; a path or a digest is broken only if it is longer than a line. */
function wrap(text: string, width: number): string {
  if (text.length <= width) return text
  const lines: string[] = []
  let line = ''
  for (let word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length <= width) {
      line = `${line} ${word}`
      continue
    }
    if (line !== '') lines.push(line)
    for (; word.length > width; word = word.slice(width)) lines.push(word.slice(0, width))
    line = word
  }
  return [...lines, line].join('\n')
}
