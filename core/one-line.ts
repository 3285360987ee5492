/** Names and messages come from jobs, providers and other people. As a part of a line they must not end it or steer a terminal. */

/** C0, DEL, C1, line and paragraph separators, and characters that change the direction of text. */
// eslint-disable-next-line no-control-regex -- the pattern searches for control characters
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Text on one line without effect on a terminal: each control character is replaced by a picture of it, one column wide. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, pictureOf)
}

/** `␊` for a newline; characters without a picture become `�`. */
export function pictureOf(control: string): string {
  const code = control.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : '\ufffd'
}

/** A clause with a capital letter and a full stop. */
export function asSentence(clause: string): string {
  return `${clause.charAt(0).toUpperCase()}${clause.slice(1).replace(/\.$/, '')}.`
}
