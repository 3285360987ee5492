/** Smaller differences are not listed; as a share of the reference's price. */
const DIFFERENCE_MIN = 0.1

/** Rows of a CSV file with a header and without quotes, each an object by column. */
export function parseCsv(text) {
  const [head, ...rows] = text.trim().split(/\r?\n/)
  const columns = head.split(',')
  return rows.map((row, index) => {
    const cells = row.split(',')
    if (cells.length !== columns.length)
      throw new Error(`line ${index + 2} has ${cells.length} columns instead of ${columns.length}`)
    return Object.fromEntries(columns.map((column, at) => [column, cells[at]]))
  })
}

/**
 * Which of two prices is older: ours, read on a day, or the reference's. Of its snapshot only the first and last possible day are known.
 * @param {{ after?: string, before?: string } | undefined} bounds days as `2025-06-01`
 */
function olderOf(ourDay, bounds) {
  if (bounds?.before !== undefined && bounds.before <= ourDay) return 'reference'
  if (bounds?.after !== undefined && bounds.after > ourDay) return 'ours'
  return 'unknown'
}

/** The bounds of a snapshot: its entry, or the date in its name. */
function boundsOf(snapshot, known) {
  const [day] = /\d{4}-\d{2}-\d{2}/.exec(snapshot) ?? []
  return known[snapshot] ?? (day === undefined ? undefined : { after: day, before: day })
}

/**
 * Compares our catalogs with the rows of a reference.
 * @param {Record<string, { day: string, usdPerHour: Record<string, number> }>} ours by backend
 * @param {{ backend: string, type: string, snapshot: string, usdPerHour: number }[]} reference
 * @returns the number of prices compared, and each that differs by more than a tenth of the reference
 */
export function compare(ours, reference, known) {
  const differences = new Map()
  const compared = new Set()
  for (const { backend, type, snapshot, usdPerHour } of reference) {
    const price = ours[backend]?.usdPerHour[type]
    if (price === undefined || !(usdPerHour > 0)) continue
    // Zones and Regions mostly have the same price: once is enough.
    const key = [backend, type, snapshot, usdPerHour].join(' ')
    compared.add(key)
    const share = price / usdPerHour - 1
    if (Math.abs(share) <= DIFFERENCE_MIN) continue
    const { day } = ours[backend]
    const older = olderOf(day, boundsOf(snapshot, known))
    differences.set(key, { backend, type, snapshot, ours: price, reference: usdPerHour, share, day, older })
  }
  return { compared: compared.size, differences: [...differences.values()] }
}
