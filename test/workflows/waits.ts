/** Waits of workflow code whose `condition` a test plays. */
export interface Wait {
  isSo: () => boolean
  limitMs: number | undefined
  /** What a timer is for, as the Temporal UI shows it. */
  summary: string
  end: (isMet: boolean) => void
}

/** In place of Temporal's `condition`: notes what waits. A timer must say what it is for. */
export const conditionOn =
  (waiting: () => Wait[]) =>
  (isSo: () => boolean, limitMs?: number, { summary = '' } = {}): Promise<boolean> => {
    if (limitMs !== undefined && summary === '') throw new Error('a timer does not say what it is for')
    if (isSo()) return Promise.resolve(true)
    return new Promise((end) => waiting().push({ isSo, limitMs, summary, end }))
  }

/** Lets everything happen that waits for nothing. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Ends the one wait, after something has happened or by its limit. */
export async function endOneOf(waiting: Wait[], happens: () => void): Promise<void> {
  await settled()
  happens()
  const [one] = waiting.splice(0)
  one!.end(one!.isSo())
  await settled()
}

/** Ends the waits for what has come about. */
export function endMet(waiting: Wait[]): void {
  const met = waiting.filter(({ isSo }) => isSo())
  waiting.splice(0, Infinity, ...waiting.filter((one) => !met.includes(one)))
  for (const { end } of met) end(true)
}

/** Lets everything happen that waits for nothing, or for what has come about by now. */
export async function settledWith(waiting: Wait[]): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await settled()
    endMet(waiting)
  }
}
