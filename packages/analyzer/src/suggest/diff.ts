/** A unified diff made from the edits themselves, so that it says exactly what was changed. */

/** Replaces `length` characters at `start` by a text. */
export interface Edit {
  start: number
  length: number
  text: string
}

/** The text with its edits, which must not overlap; those at one place keep their order. */
export function edited(text: string, edits: readonly Edit[]): string {
  let result = ''
  let at = 0
  for (const { start, length, text: inserted } of ordered(edits)) {
    result += text.slice(at, start) + inserted
    at = start + length
  }
  return result + text.slice(at)
}

const ordered = (edits: readonly Edit[]): Edit[] => [...edits].sort((a, b) => a.start - b.start)

/** Lines before and after a change that are shown. */
const CONTEXT = 3

/** Lines `first` up to `end` of the old text, and what replaces them. */
interface Change {
  first: number
  end: number
  lines: readonly string[]
}

/** The diff of a file in the form of `git diff`, for `git apply` and `patch -p1`. */
export function unifiedDiff(path: string, text: string, edits: readonly Edit[]): string {
  const lines = linesOf(text)
  const hunks: Change[][] = []
  for (const change of changesOf(text, edits)) {
    const last = hunks.at(-1)?.at(-1)
    if (last !== undefined && change.first - last.end <= 2 * CONTEXT) hunks.at(-1)!.push(change)
    else hunks.push([change])
  }
  let shift = 0
  let result = `--- a/${named(path)}\n+++ b/${named(path)}\n`
  for (const hunk of hunks) {
    const written = writeHunk(lines, hunk, shift)
    result += written.text
    shift += written.growth
  }
  return result
}

/** Programs end a name at a blank unless a tab follows it. */
const named = (path: string): string => (path.includes(' ') ? `${path}\t` : path)

function writeHunk(
  lines: readonly string[],
  hunk: readonly Change[],
  shift: number,
): { text: string; growth: number } {
  const first = Math.max(0, hunk[0]!.first - CONTEXT)
  const end = Math.min(lines.length, hunk.at(-1)!.end + CONTEXT)
  const body: string[] = []
  let at = first
  for (const change of hunk) {
    body.push(...lines.slice(at, change.first).map((line) => marked(' ', line)))
    body.push(...lines.slice(change.first, change.end).map((line) => marked('-', line)))
    body.push(...change.lines.map((line) => marked('+', line)))
    at = change.end
  }
  body.push(...lines.slice(at, end).map((line) => marked(' ', line)))
  const growth = hunk.reduce((sum, change) => sum + change.lines.length - (change.end - change.first), 0)
  const [before, after] = [end - first, end - first + growth]
  const head = `@@ -${place(first, before)} +${place(first + shift, after)} @@\n`
  return { text: head + body.join(''), growth }
}

/** An empty range names the line before it. */
const place = (first: number, count: number): string => `${count === 0 ? first : first + 1},${count}`

const marked = (mark: string, line: string): string =>
  line.endsWith('\n') ? `${mark}${line}` : `${mark}${line}\n\\ No newline at end of file\n`

/** Lines with their ends. */
function linesOf(text: string): string[] {
  const lines: string[] = []
  let at = 0
  while (at < text.length) {
    const end = text.indexOf('\n', at)
    const next = end === -1 ? text.length : end + 1
    lines.push(text.slice(at, next))
    at = next
  }
  return lines
}

/** The edits as whole lines. Edits of one line are one change. */
function changesOf(text: string, edits: readonly Edit[]): Change[] {
  const starts = [0]
  for (const line of linesOf(text)) starts.push(starts.at(-1)! + line.length)
  // Nothing follows a last line without an end.
  if (!text.endsWith('\n')) starts.pop()
  const lineAt = (offset: number): number => starts.findLastIndex((start) => start <= offset)
  const groups: { first: number; end: number; edits: Edit[] }[] = []
  for (const edit of ordered(edits)) {
    const first = lineAt(edit.start)
    const isWhole = starts[first] === edit.start && edit.length === 0 && edit.text.endsWith('\n')
    const end = isWhole ? first : lineAt(edit.start + edit.length) + 1
    const last = groups.at(-1)
    if (
      last !== undefined &&
      (first < last.end || (first === last.end && isWhole && last.first === last.end))
    ) {
      last.end = Math.max(last.end, end)
      last.edits.push(edit)
    } else groups.push({ first, end, edits: [edit] })
  }
  return groups.map(({ first, end, edits: own }) => {
    const [from, to] = [starts[first]!, starts[end] ?? text.length]
    const shifted = own.map((edit) => ({ ...edit, start: edit.start - from }))
    return {
      first,
      end,
      lines: linesOf(edited(text.slice(from, to), shifted)),
    }
  })
}
