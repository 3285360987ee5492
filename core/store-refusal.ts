import type { Failure } from './failure'
import { asSentence } from './one-line'

/** How a machine begins its words about a store that refuses it; `runner/crucible_runner/last_words.py` has the same. */
const REFUSED = 'the store refuses this machine: '
const STORE_HINT = 'Allow the machines to use the store, then submit the job again.'

/** Returns what a machine says about a store that refuses it, in any of its lines; undefined if it does not. */
export function refusalIn(text: string): string | undefined {
  const line = text.split('\n').findLast((each) => each.includes(REFUSED))
  return line?.slice(line.indexOf(REFUSED)).trim()
}

/** The failure of a machine that the store refuses, from its words: another machine would be refused, too. */
export function refusalOf(words: string): Failure {
  return { class: 'auth', message: asSentence(words), code: 'store', hint: STORE_HINT }
}
