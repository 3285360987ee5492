import { oneLine } from '../../core/one-line'

/** A spreadsheet computes a cell that begins with one of these signs, also in their wide forms. */
const SIGN = String.raw`[=+\-@\uff0b\uff0d\uff1d\uff20]`
/** Signs before which a spreadsheet still computes a cell: spaces, and the pictures of control characters. */
const BLANKS = String.raw`\s\u2400-\u241f`
const FORMULA = new RegExp(`^[${BLANKS}]*${SIGN}`)
/** Where the comma separates decimals, a spreadsheet splits cells at semicolons, and each part may be in quotes. */
const FORMULA_IN_PART = new RegExp(`^["${BLANKS}]*${SIGN}`)
const NUMBER = /^[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?$/

/**
 * Returns a row of CSV (RFC 4180) without the end of its line. A cell that a spreadsheet would compute begins with an apostrophe, which makes it
 * text; numbers stay numbers. A cell has one line: control characters are shown.
 */
export function csvRow(cells: readonly string[]): string {
  return cells.map(csvCell).join(',')
}

function csvCell(text: string): string {
  const [first = '', ...others] = oneLine(text).split(';')
  const line = [first, ...others.map((part) => (FORMULA_IN_PART.test(part) ? `'${part}` : part))].join(';')
  const cell = FORMULA.test(line) && !NUMBER.test(line) ? `'${line}` : line
  return cell === line && !/[",]/.test(cell) ? cell : `"${cell.replaceAll('"', '""')}"`
}
