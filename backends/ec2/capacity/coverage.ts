import { DAY_MS, HOUR_MS } from '../../../core/time/time'

/** How much of a run its machines can do before they are ended. */
export interface Coverage {
  /** Missing time; 0 if the run fits. */
  shortMs: number
  /** Hours in which a machine works for the run. */
  usefulHours: number
}

/** Part of a run before every block's end in which EC2 ends machines: half an hour, an hour for UltraServers. */
const CUT_OFF_MAX_MS = HOUR_MS

/** @param untilMs end of the usable time; missing without end */
export function coverageOf(
  { fromMs, untilMs = Infinity }: { fromMs: number; untilMs?: number | undefined },
  days: number,
): Coverage {
  const wantedMs = days * DAY_MS
  const usefulMs = Math.max(0, Math.min(wantedMs, untilMs - fromMs))
  return { shortMs: wantedMs - usefulMs, usefulHours: usefulMs / HOUR_MS }
}

/** Whether only the cut-off is missing, which no block of the wanted length is without. */
export function isCovered({ shortMs }: Pick<Coverage, 'shortMs'>): boolean {
  return shortMs <= CUT_OFF_MAX_MS
}

/** A price per hour in which one machine works for the run; undefined if the price is unknown or nothing of the run fits. */
export function perUsefulHour(
  usd: number | undefined,
  count: number,
  { usefulHours }: Coverage,
): number | undefined {
  return usd === undefined || usefulHours === 0 ? undefined : usd / (usefulHours * Math.max(1, count))
}
