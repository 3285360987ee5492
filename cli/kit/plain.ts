import { pictureOf } from '../../core/one-line'

/**
 * Text from jobs (log lines, artifact names, messages) reaches the user's terminal. Sequences that move the cursor, set the title or the
 * clipboard, hide text or reverse its direction are shown, not executed; colours stay.
 */

/** Colour and weight, as `picocolors` and programs use them. Without 8, which hides text. */
const HARMLESS_SGR = /^(?:|[0-79]|2[1-9]|[34][0-79]|9[0-7]|10[0-7])$/
/** Matches one of 256 colours, or a 24-bit colour. */
const OF_MANY_COLOURS = /(?:^|;)[34]8[;:](?:5[;:]\d+|2[;:]\d+[;:]\d+[;:]\d+)(?=;|$)/g

// eslint-disable-next-line no-control-regex -- the pattern searches for control characters
const SGR = /\u001b\[([\d;:]*)m/g
/** C0 except tab and newline, DEL, C1, line and paragraph separators, and characters that change the direction of text. */
// eslint-disable-next-line no-control-regex -- the pattern searches for control characters
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g
const RESET = '\u001b[0m'

/** Returns text that is safe to print, because it has no other effect on the terminal. */
export function plain(text: string): string {
  let last = 0
  let isStyled = false
  let result = ''
  for (const match of text.matchAll(SGR)) {
    result += shown(text.slice(last, match.index))
    last = match.index + match[0].length
    if (!isHarmless(match[1]!)) {
      result += shown(match[0])
      continue
    }
    isStyled = !ENDS_STYLE.test(match[1]!)
    result += match[0]
  }
  result += shown(text.slice(last))
  // A style left open would colour everything after the line.
  return isStyled ? `${result}${RESET}` : result
}

const ENDS_STYLE = /^(?:|0+|2[2-9]|[345]9)$/

function isHarmless(parameters: string): boolean {
  const others = parameters.replace(OF_MANY_COLOURS, '').split(';')
  return others.every((each) => HARMLESS_SGR.test(each))
}

/** Text for a file or a pipe: also colours are shown. */
export function shown(text: string): string {
  return text.replace(CONTROL, pictureOf)
}

/** Text without its colours, which are left out; other sequences stay. */
export function uncoloured(text: string): string {
  return text.replace(SGR, (sequence, parameters: string) => (isHarmless(parameters) ? '' : sequence))
}

/** JSON that is safe for a terminal: also escapes characters that `JSON.stringify` leaves unescaped. */
export function plainJson(json: string): string {
  return json.replace(CONTROL, (control) =>
    control < ' ' ? control : `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
