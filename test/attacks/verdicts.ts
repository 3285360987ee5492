import type { Threat } from './threats'

export interface Tried {
  name: string
  /** `passed`, `failed`, or Jest's words for what was skipped. */
  status: string
}

/** `missing`: no test has tried it. */
export type Outcome = 'held' | 'GOT THROUGH' | 'skipped' | 'missing'

export function verdictOf(tried: readonly Tried[]): Outcome {
  if (tried.length === 0) return 'missing'
  if (tried.some(({ status }) => status === 'failed')) return 'GOT THROUGH'
  return tried.every(({ status }) => status === 'passed') ? 'held' : 'skipped'
}

/** The table of docs/guides/security.md; with outcomes, what came of each. */
export function rowsOf(threats: readonly Threat[], outcomes?: readonly Outcome[]): string[] {
  const cells = threats.map(({ from, tries, keeps }, index) =>
    outcomes === undefined ? [from, tries, keeps] : [outcomes[index]!, from, tries, keeps],
  )
  const head = ['FROM', 'ATTACK', 'WHAT STOPS IT']
  const lines = [outcomes === undefined ? head : ['OUTCOME', ...head], ...cells]
  const rows = lines.map((line) => `| ${line.join(' | ')} |`)
  return [rows[0]!, `|${lines[0]!.map(() => '---|').join('')}`, ...rows.slice(1)]
}
