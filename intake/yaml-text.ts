/** Parses YAML text to a plain value, with the position of every part. */
import {
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  visit,
  type Alias,
  type Document,
  type Node,
} from 'yaml'
import { LIMITS } from './fields'
import type { Path } from './problem'

/** Line and column, both from 1. */
interface Place {
  line: number
  column: number
}

export interface YamlFault extends Place {
  message: string
  remedy: string
}

/** A parsed text: its value, and the position of each part. */
export interface YamlText {
  value: unknown
  /** The position of the value at a path, or of the field's name; of the nearest enclosing part if it is not in the text. */
  placeOf(path: Path, isAboutName: boolean): Place
}

/** Nesting limit; the parser recurses, and thousands of levels would crash the process. */
const DEPTH_MAX = 32
/** Longest number; a double has at most 25 characters. */
const NUMBER_CHARS_MAX = 64
/** Limit on uses of anchors, so that a few lines cannot expand to a billion. */
const ALIASES_MAX = 100

/**
 * Reads one YAML document.
 *
 * @param verbatim paths of mappings, such as `job.env`, whose values are texts as written: `1e-3` stays `1e-3`, `true` stays `true`
 */
export function readYaml(text: string, verbatim: readonly string[]): YamlText | { faults: YamlFault[] } {
  const unreadable = faultOfText(text)
  if (unreadable !== undefined) return { faults: [unreadable] }
  const lines = new LineCounter()
  const document = parsed(text, lines)
  if (document === undefined) return { faults: [{ line: 1, column: 1, ...TOO_DEEP }] }
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const troubles = [...document.errors, ...document.warnings]
  if (troubles.length > 0) {
    const ofShell = faultOfShellText(text, troubles[0]!.pos[0])
    if (ofShell !== undefined) return { faults: [{ ...placeAt(ofShell.offset), ...OF_SHELL }] }
    // Errors of the syntax after the first one mostly follow from it.
    const [first, ...others] = troubles
    const told = [first!, ...others.filter(({ code }) => REMEDIES[code] !== undefined).slice(0, 4)]
    return {
      faults: told.map(({ code, message, pos }) => ({
        ...placeAt(pos[0]),
        ...wordsFor(code, message, text.slice(pos[0])),
      })),
    }
  }
  const lost = faultOfLostKey(document, placeAt)
  if (lost !== undefined) return { faults: [lost] }
  for (const name of verbatim) keepSource(nodeAt(document, name.split('.')))
  const long = faultOfLongNumber(document, placeAt)
  if (long !== undefined) return { faults: [long] }
  try {
    return {
      value: document.toJS({ maxAliasCount: ALIASES_MAX }) as unknown,
      placeOf: (path, isAboutName) => placeAt(offsetOf(document, path, isAboutName)),
    }
  } catch {
    return { faults: [faultOfAliases(document, placeAt)] }
  }
}

/** The document of a text; `undefined` if its nesting exhausts the stack of the parser, in ways that `lineTooDeep` does not see. */
function parsed(text: string, lineCounter: LineCounter): Document | undefined {
  try {
    return parseDocument(text, {
      lineCounter,
      logLevel: 'error',
      prettyErrors: false,
      merge: true,
      version: '1.2',
    })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const OF_SHELL = {
  message: '${ begins a mapping in YAML here, and no shell reads a job file',
  remedy: 'write it in run, whose shell replaces it, such as export OUT=${OUT:-/tmp/out}',
}

/** A `${NAME}` before the place of a trouble, in its line. */
function faultOfShellText(text: string, offset: number): { offset: number } | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  const [line = ''] = text.slice(start).split('\n', 1)
  const at = /(?<![\w"'])\$\{[A-Za-z_]/.exec(line)?.index
  return at === undefined ? undefined : { offset: start + at }
}

/** The document itself and its mapping. */
const TOP_LEVEL = 2

/** `__proto__` as a key would set the object's prototype and be lost. At the top it is an unknown field. */
function faultOfLostKey(document: Document, placeAt: (offset: number) => Place): YamlFault | undefined {
  let fault: YamlFault | undefined
  visit(document, {
    Pair: (_, { key }, ancestors) => {
      if (!isScalar(key) || key.value !== '__proto__' || ancestors.length <= TOP_LEVEL) return undefined
      const place = placeAt(key.range?.[0] ?? 0)
      fault = { ...place, message: '__proto__ cannot be the name of a field', remedy: 'choose another name' }
      return visit.BREAK
    },
  })
  return fault
}

/** A number with more digits than any field can hold, which every later reader would have to go over. */
function faultOfLongNumber(document: Document, placeAt: (offset: number) => Place): YamlFault | undefined {
  let fault: YamlFault | undefined
  visit(document, {
    Scalar: (_, { value, source, range }) => {
      if (typeof value !== 'number' || source === undefined || source.length <= NUMBER_CHARS_MAX)
        return undefined
      fault = {
        ...placeAt(range?.[0] ?? 0),
        message: `the number has ${source.length} characters of at most ${NUMBER_CHARS_MAX}`,
        remedy: 'correct it, or put quotes around a text of digits',
      }
      return visit.BREAK
    },
  })
  return fault
}

/** Building a value fails only if an alias names nothing, or aliases repeat each other endlessly. */
function faultOfAliases(document: Document, placeAt: (offset: number) => Place): YamlFault {
  let lost: Alias | undefined
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) !== undefined) return undefined
      lost = alias
      return visit.BREAK
    },
  })
  if (lost === undefined) {
    return { line: 1, column: 1, message: 'anchors repeat each other too often', remedy: 'write it out' }
  }
  return {
    ...placeAt(lost.range?.[0] ?? 0),
    message: `*${lost.source} refers to nothing`,
    remedy: `put &${lost.source} before what it should repeat, or quotes around a text that begins with *`,
  }
}

/** A fault that prevents the text from being parsed at all. */
function faultOfText(text: string): YamlFault | undefined {
  const start = { line: 1, column: 1 }
  const bytes = new TextEncoder().encode(text).length
  if (bytes > LIMITS.fileBytes) {
    return {
      ...start,
      message: `the file has ${bytes} bytes, but a job file may have at most ${LIMITS.fileBytes}`,
      remedy: 'name the job file; data belongs under inputs or in the working directory',
    }
  }
  // Decoding artifacts of binary data, and control characters that YAML forbids.
  const junk = /\uFFFD|(?![\t\n\r\x85])\p{Cc}/u.exec(text)
  if (junk !== null) {
    const before = text.slice(0, junk.index).split('\n')
    return {
      line: before.length,
      column: before.at(-1)!.length + 1,
      message: 'the file is not a text in UTF-8',
      remedy: 'name the job file, or save it as UTF-8',
    }
  }
  const deep = lineTooDeep(text)
  if (deep === undefined) return undefined
  return { line: deep, column: 1, ...TOO_DEEP }
}

const TOO_DEEP = {
  message: 'lists and mappings are nested too deeply',
  remedy: `stay within ${DEPTH_MAX} levels`,
}

/** The line in which nesting exceeds `DEPTH_MAX`. */
function lineTooDeep(text: string): number | undefined {
  let line = 1
  let flows = 0
  let dashes = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') flows++
    else if (token === ']' || token === '}') flows--
    else if (token === '-' || token === '?') dashes++
    if (flows > DEPTH_MAX || dashes > DEPTH_MAX) return line
    if (!token.includes('\n')) continue
    line += token.split('\n').length - 1
    dashes = 0
  }
  return undefined
}

function wordsFor(code: string, message: string, rest: string): { message: string; remedy: string } {
  const remedy = REMEDIES[code]
  const [name = 'the field'] = /^[\w.-]+/.exec(rest) ?? []
  if (remedy !== undefined) return { ...remedy, message: remedy.message.replace('NAME', name) }
  if (message.startsWith('Nested mappings are not allowed in compact'))
    return {
      message: 'the file is not YAML: a second colon follows on this line, or the next line is indented more',
      remedy: 'put quotes around a text with a colon, and indent the fields of one mapping alike',
    }
  return {
    message: `the file is not YAML: ${lower(message)}`,
    remedy: 'check indentation, quotes and colons from here upwards',
  }
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

/** Our words for errors of the parser; several of them are reported at once. NAME is the text at the place. */
const REMEDIES: Readonly<Record<string, { message: string; remedy: string }>> = {
  DUPLICATE_KEY: { message: 'NAME appears twice', remedy: 'remove one of the two' },
  TAB_AS_INDENT: { message: 'a tab indents this line', remedy: 'indent with spaces' },
  MULTIPLE_DOCS: { message: 'a second document begins after ---', remedy: 'write one file per job' },
  TAG_RESOLVE_FAILED: { message: 'tags (!...) are not supported', remedy: 'remove it' },
}

/** The node at a path of names; `undefined` if something else than a mapping is on the way. */
function nodeAt(document: Document, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (node, name) => (isMap(node) ? node.get(name, true) : undefined),
    document.contents,
  )
}

/** Converts the scalars in a mapping to texts, as written in the file. */
function keepSource(node: unknown): void {
  if (!isMap(node)) return
  for (const { value } of node.items) {
    const isOther = isScalar(value) && (typeof value.value === 'number' || typeof value.value === 'boolean')
    if (isOther && value.source !== undefined) value.value = value.source
  }
}

/** Where a part of the document begins in the text. */
function offsetOf(document: Document, path: Path, isAboutName: boolean): number {
  let node: unknown = document.contents
  let offset = (document.contents?.range ?? [0])[0]
  for (const [depth, part] of path.entries()) {
    if (isAlias(node)) node = node.resolve(document)
    const isLast = depth === path.length - 1
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      if (pair === undefined) return offset
      node = isLast && isAboutName ? pair.key : (pair.value ?? pair.key)
    } else if (isSeq(node) && typeof part === 'number') {
      node = node.items[part]
    } else return offset
    const range = isPair(node) ? undefined : (node as Node | undefined)?.range
    if (range === null || range === undefined) return offset
    offset = range[0]
  }
  return offset
}
