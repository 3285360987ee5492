/** What tables of harnesses are made of. */

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}

/** The sums of counts by their names. */
export function total(counts: readonly Readonly<Record<string, number>>[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [what, times] of counts.flatMap((each) => Object.entries(each)))
    sums.set(what, (sums.get(what) ?? 0) + times)
  return sums
}

/** How often each word comes. */
export function tally(words: readonly string[]): Map<string, number> {
  return total(words.map((word) => ({ [word]: 1 })))
}

/** Lines of cells in columns: the first to the left, the others as told. */
export function inColumns(lines: readonly (readonly string[])[], side: 'left' | 'right'): string[] {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines.map((line) =>
    line
      .map((cell, column) =>
        column === 0 || side === 'left' ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join('  ')
      .trimEnd(),
  )
}
