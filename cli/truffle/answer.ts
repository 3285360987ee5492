import { Document, visit } from 'yaml'
import { CrucibleError, type ErrorKind } from '../../client/errors'
import { csvRow } from '../kit/csv'
import { errorDocument } from '../kit/endings'
import type { Output, Sink } from '../kit/output'
import { plain, plainJson, shown } from '../kit/plain'

export const FORMATS = ['table', 'json', 'yaml', 'csv', 'terraform'] as const
export type Format = (typeof FORMATS)[number]

/** Version of the documents for programs; it changes when a field changes its meaning or is removed. */
export const SCHEMA = 'truffle/1'

type Cell = string | number | boolean | null | readonly Cell[] | { readonly [name: string]: Cell }
export type Row = Readonly<Record<string, Cell>>

/** A Region that did not answer. */
export interface UnansweredRow {
  region: string
  code: string | null
  message: string
  hint: string | null
}

/** Result of a command, for people and for programs. */
export interface Answer {
  command: string
  /** Results, which all have the same fields. */
  results: readonly Row[]
  /** Fields of the results, in the order of CSV's columns. */
  columns: readonly string[]
  /** Fields of the document in addition to the results. */
  more?: Row
  unanswered: readonly UnansweredRow[]
  /** Sentences that help to read the answer, on stderr for people. */
  notes: readonly string[]
  /** Prints it for people. */
  show: (out: Output) => void
  terraform?: () => string
  /** Kind of the ending, if the command does not succeed. */
  ending?: ErrorKind
}

function documentOf({ command, results, more, unanswered, notes }: Answer): object {
  return { schema: SCHEMA, command, ...more, results, unanswered, notes }
}

/** Writes an answer in its format; notes for people go to stderr in every format. */
export function writeAnswer(
  answer: Answer,
  { format, out, stdout }: { format: Format; out: Output; stdout: Sink },
): void {
  switch (format) {
    case 'table':
      answer.show(out)
      break
    case 'json':
      stdout.write(`${plainJson(JSON.stringify(documentOf(answer), null, 2))}\n`)
      break
    case 'yaml':
      stdout.write(yaml(documentOf(answer)))
      break
    case 'csv':
      stdout.write(csv(answer.columns, answer.results))
      break
    case 'terraform':
      stdout.write(answer.terraform?.() ?? '')
  }
  for (const note of answer.notes) out.note(out.paintNote.dim(note))
  for (const { region, message, hint } of answer.unanswered) {
    const text = `No answer from ${region}: ${message.replace(/\.$/, '')}.`
    out.note(out.paintNote.yellow(`${text}${hint === null ? '' : ` ${hint}`}`))
  }
}

/** Writes a text that is a whole answer, such as a help, as the field `name`. */
export function writeText(
  { name, text }: { name: string; text: string },
  { format, out, stdout }: { format: Format; out: Output; stdout: Sink },
): void {
  if (format === 'json') out.json({ [name]: text })
  else if (format === 'yaml') stdout.write(yaml({ schema: SCHEMA, [name]: text }))
  else if (format === 'csv') stdout.write(csv([name], [{ [name]: text }]))
  else stdout.write(`${plain(text)}\n`)
}

/** Writes an error in place of the answer, so that programs always get a whole document. */
export function writeError(
  given: CrucibleError,
  { format, out, stdout }: { format: Format; out: Output; stdout: Sink },
): void {
  const error = new CrucibleError(given.kind, sentence(given.message), {
    hint: given.hint,
    details: given.details,
  })
  const document = { schema: SCHEMA, ...errorDocument(error) }
  if (format === 'json') stdout.write(`${plainJson(JSON.stringify(document))}\n`)
  else if (format === 'yaml') stdout.write(yaml(document))
  else if (format === 'csv') {
    const { kind, message, hint = null } = error
    stdout.write(csv(['error', 'message', 'hint'], [{ error: kind, message, hint }]))
  }
  if (format === 'json' || format === 'yaml') return
  out.note(`${out.paintNote.red('error:')} ${error.message}`)
  if (error.hint !== undefined) out.note(error.hint)
}

/** Backends word their failures as parts of sentences. */
function sentence(text: string): string {
  // A name such as `us-east-1` keeps its spelling.
  const isWord = /^[a-z]+(?:\s|$)/.test(text)
  const begun = isWord ? `${text.charAt(0).toUpperCase()}${text.slice(1)}` : text
  return /[.!?]$/.test(begun) ? begun : `${begun}.`
}

/** YAML in which texts with control characters are quoted, with escapes. */
function yaml(value: object): string {
  const document = new Document(value)
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'string' && shown(node.value) !== node.value) node.type = 'QUOTE_DOUBLE'
    },
  })
  return plainJson(document.toString())
}

/** CSV with a line of names even without rows. */
function csv(columns: readonly string[], rows: readonly Row[]): string {
  const lines = [columns, ...rows.map((row) => columns.map((name) => textOf(row[name] ?? null)))]
  return lines.map((cells) => `${csvRow(cells)}\r\n`).join('')
}

/** Lists are joined by semicolons; other structures are JSON. */
function textOf(cell: Cell): string {
  if (cell === null) return ''
  if (Array.isArray(cell) && cell.every((one) => typeof one !== 'object')) return cell.join(';')
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell)
}
