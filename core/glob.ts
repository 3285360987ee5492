/**
 * Globs of a job file, with the rules of the machine's runner (`runner/crucible_runner/globs.py`): `test/runner/globs.json` has cases for both.
 *
 * `*` and `?` stand for characters of one name, `[a-z]` for one of them and `[!a-z]` or `[^a-z]` for one that is not listed. `**` as a whole
 * part of a path stands for any number of folders, and next to other characters for any text, `/` included. A match of a folder includes
 * its content. No step goes back: a glob is a small machine over the names of a path, and a name is compared piece by piece from the left.
 */

/** A character of a name: itself, `?` for any, or a class. */
type Token = string | { isNegated: boolean; ranges: readonly (readonly [first: string, last: string])[] }

const ANY: unique symbol = Symbol('any character')

/** A part of a name between two stars. */
type Piece = readonly (Token | typeof ANY)[]

/** The part of a glob for one name; `undefined` for any name. */
interface Edge {
  pieces: readonly Piece[] | undefined
  target: number
}

interface Options {
  /** Whether a name that begins with a dot matches without a dot in the glob: so in a checkpoint directory, and not under `outputs`. */
  isHiddenMatched: boolean
}

/** Each `**` next to other characters costs a state and an edge to every later one. */
const INNER_MAX = 8

/** Why a glob has no meaning; the message completes "the pattern <glob> ...". */
export interface GlobFault {
  message: string
}

export interface Glob {
  matches(path: string): boolean
}

/** Reads a glob. A bracket that is not closed is an ordinary character. */
export function parseGlob(glob: string, options: Options = { isHiddenMatched: true }): Glob | GlobFault {
  const parts = glob.split('/').filter((part) => part !== '')
  const edges: Edge[][] = [[]]
  let at = 0
  const added = (): number => edges.push([]) - 1
  for (const [index, part] of parts.entries()) {
    if (/^\*{2,}$/.test(part)) {
      const target = index === parts.length - 1 ? added() : at
      edges[at]!.push({ pieces: undefined, target })
      at = target
      continue
    }
    const inner = part.split(/\*{2,}/)
    if (inner.length - 1 > INNER_MAX)
      return { message: `has more than ${INNER_MAX} times ** next to other characters` }
    const read = inner.map(piecesOf)
    const fault = read.find((one): one is GlobFault => 'message' in one)
    if (fault !== undefined) return fault
    at = joinName(read as Piece[][], { edges, at, added })
  }
  const end = parts.length === 0 ? -1 : at
  return {
    matches: (path) => {
      let states = new Set([0])
      for (const name of path.split('/')) {
        states = stepped(edges, { states, name: [...name], ...options })
        if (states.has(end)) return true
      }
      return false
    },
  }
}

/** Whether a name without a `/`, such as that of a machine type, matches a glob; one that is malformed matches nothing. */
export function isGlobMatch(glob: string, name: string): boolean {
  const read = parseGlob(glob)
  return !('message' in read) && read.matches(name)
}

/** Adds a part of a glob; within `a**b` a path may have any number of `/`, so that each `**` is a state of its own. */
function joinName(
  inner: readonly (readonly Piece[])[],
  { edges, at, added }: { edges: Edge[][]; at: number; added: () => number },
): number {
  const gaps = inner.slice(1).map(added)
  const end = added()
  for (const first of inner.keys()) {
    const source = first === 0 ? at : gaps[first - 1]!
    let pieces: readonly Piece[] = first === 0 ? [[]] : [[], []]
    if (first > 0) edges[source]!.push({ pieces: undefined, target: source })
    for (let last = first; last < inner.length; last += 1) {
      pieces = joined(pieces, inner[last]!)
      const isEnd = last === inner.length - 1
      edges[source]!.push({
        pieces: isEnd ? pieces : [...pieces, []],
        target: isEnd ? end : gaps[last]!,
      })
      pieces = [...pieces, []]
    }
  }
  return end
}

/** Appends pieces; the first of them continues the last one of those before. */
function joined(before: readonly Piece[], after: readonly Piece[]): readonly Piece[] {
  const [first = [], ...rest] = after
  return [...before.slice(0, -1), [...(before.at(-1) ?? []), ...first], ...rest]
}

interface Step extends Options {
  states: ReadonlySet<number>
  /** The characters of a name. */
  name: readonly string[]
}

function stepped(edges: readonly (readonly Edge[])[], { states, name, isHiddenMatched }: Step): Set<number> {
  const after = new Set<number>()
  for (const state of states)
    for (const { pieces, target } of edges[state] ?? [])
      if (!after.has(target) && isMatch(pieces, name, isHiddenMatched)) after.add(target)
  return after
}

function isMatch(
  pieces: readonly Piece[] | undefined,
  name: readonly string[],
  isHiddenMatched: boolean,
): boolean {
  if (name[0] === '.' && !isHiddenMatched && pieces?.[0]?.[0] !== '.') return false
  if (pieces === undefined) return true
  const [first = [], ...others] = pieces
  const last = others.pop()
  if (last === undefined) return name.length === first.length && isAt(first, name, 0)
  const end = name.length - last.length
  if (end < first.length || !isAt(first, name, 0) || !isAt(last, name, end)) return false
  let at = first.length
  for (const piece of others) {
    // The leftmost occurrence leaves the most for the pieces that follow, so none other has to be tried.
    while (at + piece.length <= end && !isAt(piece, name, at)) at += 1
    at += piece.length
    if (at > end) return false
  }
  return true
}

function isAt(piece: Piece, name: readonly string[], at: number): boolean {
  return piece.every((token, index) => isOf(name[at + index]!, token))
}

function isOf(character: string, token: Piece[number]): boolean {
  if (token === ANY) return true
  if (typeof token === 'string') return character === token
  return token.isNegated !== token.ranges.some(([first, last]) => first <= character && character <= last)
}

/** The pieces of a part of a glob, between its stars. */
function piecesOf(part: string): Piece[] | GlobFault {
  const pieces: (Token | typeof ANY)[][] = [[]]
  const characters = [...part]
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at]!
    const end = character === '[' ? endOfClass(characters, at) : -1
    if (end !== -1) {
      const token = classOf(characters.slice(at + 1, end))
      if ('message' in token) return token
      pieces.at(-1)!.push(token)
      at = end
    } else if (character === '*') pieces.push([])
    else pieces.at(-1)!.push(character === '?' ? ANY : character)
  }
  return pieces
}

/** Where the class that begins at a bracket ends; -1 if the bracket is an ordinary character. A `]` in front is a member. */
function endOfClass(characters: readonly string[], at: number): number {
  const members = isNegation(characters[at + 1]) ? at + 2 : at + 1
  return characters.indexOf(']', members + 1)
}

const isNegation = (character: string | undefined): boolean => character === '!' || character === '^'

function classOf(characters: readonly string[]): Exclude<Token, string> | GlobFault {
  const isNegated = isNegation(characters[0])
  const members = isNegated ? characters.slice(1) : characters
  const ranges: [string, string][] = []
  for (let at = 0; at < members.length; at += 1) {
    const first = members[at]!
    const isRange = members[at + 1] === '-' && at + 2 < members.length
    const last = isRange ? members[at + 2]! : first
    if (isRange) at += 2
    if (first > last) return { message: `has the range ${first}-${last}, which is in reverse order` }
    ranges.push([first, last])
  }
  return { isNegated, ranges }
}

/** Whether a bracket of a glob is not closed, so that it would be an ordinary character. */
export function hasOpenBracket(glob: string): boolean {
  return glob.split('/').some((part) => {
    const characters = [...part]
    for (let at = 0; at < characters.length; at += 1) {
      if (characters[at] !== '[') continue
      at = endOfClass(characters, at)
      if (at === -1) return true
    }
    return false
  })
}
