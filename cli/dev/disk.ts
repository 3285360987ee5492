import { clearInterval, setInterval } from 'node:timers'
import { SECOND_MS } from '../../core/time/time'
import { fullDiskInWords } from '../../storage/full-disk'

const LOOK_EVERY_MS = 10 * SECOND_MS

/**
 * Reports when the disk of a folder is full and when it has space again, since the programs that write there only fail or hang. Returns a
 * function that ends the reports.
 */
export function watchDisk(folder: string, note: (text: string) => void, everyMs = LOOK_EVERY_MS): () => void {
  let isFull = false
  const look = (): void => {
    const words = fullDiskInWords(folder)
    const wasFull = isFull
    isFull = words !== undefined
    if (words !== undefined && !wasFull)
      note(`${words} Until then Temporal and the store cannot write; running jobs keep running.`)
    if (words === undefined && wasFull) note(`The disk of ${folder} has space again.`)
  }
  look()
  const timer = setInterval(look, everyMs)
  return () => clearInterval(timer)
}
