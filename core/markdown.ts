/**
 * Text from outside on pages that are read as markdown, as Temporal's Web UI reads summaries and details. It makes no link, no
 * picture, no heading and no formula there; code between backticks stays code.
 */
export function plainInMarkdown(text: string): string {
  return text
    .replace(/\s*[\r\n]\s*/g, ' ')
    .split(CODE)
    .map((part) => (CODE.test(part) ? part : escaped(part)))
    .join('')
}

/** The same of a name that stands where code would be out of place. */
export function nameInMarkdown(text: string): string {
  return escaped(text.replace(/\s+/g, ' '))
}

const CODE = /(`[^`]+`)/

function escaped(text: string): string {
  return (
    text
      .replace(/[\\`*[\]<>|$]|~~/g, (special) => `\\${special}`)
      // Inside a word it means nothing, and names are full of it.
      .replace(/(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, '\\_')
      // Addresses become links without any mark.
      .replace(/:\/\//g, ':\\/\\/')
      .replace(/\bwww\./gi, (prefix) => prefix.replace('.', '\\.'))
      .replace(
        /^\s*(?:[-+#>]|\d+[.)])(?=\s|$)/,
        (start: string) => `${start.slice(0, -1)}\\${start.slice(-1)}`,
      )
  )
}
