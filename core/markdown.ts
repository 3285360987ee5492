import { oneLine } from './one-line'

/**
 * Escapes text from outside for pages that are rendered as Markdown, such as summaries and details in Temporal's Web UI. It creates no
 * link, image, heading or formula there, and turns no direction; code between backticks stays code.
 */
export function plainInMarkdown(text: string): string {
  return oneLine(text.replace(/(?<!\s)\s*[\r\n]\s*/g, ' ').replaceAll('\t', ' '))
    .split(CODE)
    .map((part) => (CODE.test(part) ? part : escaped(part)))
    .join('')
}

/** Escapes a name outside code for a page that is rendered as Markdown. */
export function nameInMarkdown(text: string): string {
  return escaped(oneLine(text.replace(/\s+/g, ' ')))
}

const CODE = /(`[^`]+`)/

function escaped(text: string): string {
  return (
    text
      .replace(/[\\`*[\]<>|$]|~~/g, (special) => `\\${special}`)
      // Harmless inside a word, and common in names.
      .replace(/(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, '\\_')
      // Addresses become links without any markup.
      .replace(/:\/\//g, ':\\/\\/')
      .replace(/\bwww\./gi, (prefix) => prefix.replace('.', '\\.'))
      .replace(
        /^\s*(?:[-+#>]|\d+[.)])(?=\s|$)/,
        (start: string) => `${start.slice(0, -1)}\\${start.slice(-1)}`,
      )
  )
}
