/** Waits of workflow code whose `condition` a test plays. */
export interface Wait {
  isSo: () => boolean
  limitMs: number | undefined
  end: (isMet: boolean) => void
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

/** Lets everything happen that waits for nothing, or for what has come about by now. */
export async function settledWith(waiting: Wait[]): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await settled()
    const met = waiting.filter(({ isSo }) => isSo())
    waiting.splice(0, Infinity, ...waiting.filter((one) => !met.includes(one)))
    for (const { end } of met) end(true)
  }
}
