import { stripVTControlCharacters } from 'node:util'

/** A word, or a command in backticks, which a person copies whole. */
const WORD = /`[^`]*`\S*|\S+/g

/** Wraps each line of a text at its words; its indentation, and `indent` more columns, begin the further lines. */
export function wrapProse(text: string, width: number, indent = 0): string {
  return text
    .split('\n')
    .map((line) => wrapLine(line, width, indent))
    .join('\n')
}

function wrapLine(text: string, width: number, indent: number): string {
  if (lengthOf(text) <= width) return text
  const margin = ' '.repeat(/^ */.exec(text)![0].length + indent)
  const lines: string[] = []
  let line = ''
  let end = 0
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const gap = text.slice(end, index)
    end = index + word.length
    const isFirst = line.trim() === ''
    // A word that no line can hold, such as an address, stays where it is.
    const isTooLong = lengthOf(margin + word) > width
    if (isFirst || isTooLong || lengthOf(line + gap + word) <= width) {
      line += isFirst && lines.length > 0 ? word : gap + word
      continue
    }
    lines.push(line)
    line = margin + word
  }
  return [...lines, line].join('\n')
}

function lengthOf(text: string): number {
  return stripVTControlCharacters(text).length
}
