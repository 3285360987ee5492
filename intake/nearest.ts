/** A longer word is not a misspelt one, and a comparison takes quadratic time. */
const LETTERS_MAX = 100

/** The candidate closest to a misspelt word, or `undefined` if none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const folded = fold(word)
  if (folded.length > LETTERS_MAX) return undefined
  // Largest number of typing errors: one in three letters is likely; more means another word.
  const slipsMax = Math.max(1, Math.floor(folded.length / 3))
  return candidates
    .map((candidate) => ({ candidate, letters: fold(candidate) }))
    .filter(({ letters }) => Math.abs(letters.length - folded.length) <= slipsMax)
    .map(({ candidate, letters }) => ({ candidate, slips: distance(folded, letters) }))
    .filter(({ slips }) => slips <= slipsMax)
    .sort((a, b) => a.slips - b.slips)[0]?.candidate
}

function fold(word: string): string {
  return word.toLowerCase().replace(/[\s_-]/g, '')
}

/** Letters to insert, delete, replace or swap with a neighbour to turn one word into the other. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      let least = Math.min(rows[i - 1]![j]! + 1, row[j - 1]! + 1, rows[i - 1]![j - 1]! + (isSame ? 0 : 1))
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwap) least = Math.min(least, rows[i - 2]![j - 2]! + 1)
      row.push(least)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
