/** Markdown for the Temporal UI, which reads two dollar signs on a page as a formula and does not support tables. */
import { plainInMarkdown } from '../core/markdown'
import { formatUsd, type MicroUsd } from '../core/money/money'

/** An amount, as code. */
export function money(amount: MicroUsd): string {
  return `\`${formatUsd(amount)}\``
}

/** Sentences from outside, which may contain anything, with their amounts as code. */
export function sentence(text: string): string {
  return plainInMarkdown(
    text.replace(/(`[^`]+`)|-?\$\d+(?:\.\d+)?/g, (found, code?: string) => code ?? `\`${found}\``),
  )
}

/** A state, why, and a sentence about it. */
export function headline({ state, reason, text }: { state: string; reason: string; text: string }): string {
  const why = isSaidBy(state, reason) ? '' : ` (${reason})`
  return `**${state}**${why}${text === '' ? '' : `: ${sentence(text)}`}`
}

/** True if a reason only repeats the state. */
export function isSaidBy(state: string, reason: string): boolean {
  return reason === state || reason === USUAL_REASON[state]
}

const USUAL_REASON: Readonly<Record<string, string>> = { running: 'training', succeeded: 'completed' }

/** Limit for a runner's text; ours are far shorter. */
const WARNING_LENGTH_MAX = 1_000

/** A runner's warning, for a page; empty without one. */
export function warningLines(text: string, of = ''): string[] {
  return text === '' ? [] : ['', `**Warning${of}:** ${sentence(text.slice(0, WARNING_LENGTH_MAX))}`]
}
